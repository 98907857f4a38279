"""Which files a worker may see: Python and its packages to read, one scratch folder to write, nothing else.

By Landlock, which an ordinary process may put on itself: https://docs.kernel.org/userspace-api/landlock.html.
Landlock governs opening, listing and changing. It governs neither modes, owners and times, which `system_calls`
refuses, nor asking whether a path exists.
"""

from collections.abc import Sequence
from pathlib import Path

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random")


def landlock_version() -> int:
    """The version of Landlock's interface that the kernel has; 0 where it has none, or a container's filter refuses."""
    try:
        import landlockpy

        return landlockpy.abi_version()
    except (ImportError, OSError):
        return 0


def restrict(
    readable: Sequence[str], scratch: str | None, devices: Sequence[str] = DEVICES, *, ioctl: bool = False
) -> None:
    """Leaves this process these folders and files to read, and the scratch folder to do as it likes; OSError if not.

    scratch: None where it has none to write to. ioctl: devices may be spoken to by ioctl, as a GPU's driver does.
    """
    from landlockpy import AccessFS, Ruleset, fs_for_abi, net_for_abi, scope_for_abi

    version = landlock_version()
    read, look = AccessFS.READ_FILE, AccessFS.READ_DIR
    own = fs_for_abi(version) & ~(AccessFS.EXECUTE | AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK | AccessFS.MAKE_SOCK)
    with Ruleset(
        handled_fs=fs_for_abi(version),
        handled_net=net_for_abi(version),
        scoped=scope_for_abi(version),
        best_effort=False,
    ) as rules:
        for place in map(Path, readable):
            if place.exists():
                rules.allow_path(place, read | look if place.is_dir() else read)
        for device in map(Path, devices):
            if device.exists():
                spoken_to = AccessFS.IOCTL_DEV if ioctl else AccessFS.NONE
                rules.allow_path(device, read | AccessFS.WRITE_FILE | spoken_to)
        if scratch is not None:
            rules.allow_path(scratch, own)
        rules.restrict()

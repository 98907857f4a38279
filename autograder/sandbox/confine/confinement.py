"""The isolation levels: prepared once in the process that forks, enforced in each worker.

Levels, as docs/security.md describes them: `A` is bubblewrap around the fork server and, on each worker, Landlock, a
system-call filter and limits; `B` is the same without bubblewrap; `none` is the limits only.

Landlock (https://docs.kernel.org/userspace-api/landlock.html) governs opening, listing and changing files. It governs
neither modes, owners and times, which `system_calls` refuses, nor the question whether a path exists.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from . import process, resources, scratch, system_calls

Level = Literal["A", "B", "none"]

LEAST_LANDLOCK: dict[Level, int] = {"A": 1, "B": 2}
"""Landlock versions that the levels need: without bubblewrap, it must govern moving files between folders."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random")


class CannotConfine(Exception):
    """The level is not available here; `str()` says what is missing."""


@dataclass(frozen=True)
class Terms:
    """The confinement that the trusted side requires of a process that forks workers."""

    level: Level
    readable: Sequence[str]
    """Folders and files that a worker may read."""
    scratch: str | None = None
    """The folder in which workers' scratch folders are made; None if workers have none."""
    scratch_bytes: int = 0
    """Limit for the scratch folders."""
    devices: Sequence[str] = DEVICES
    cuda: bool = False


@dataclass(frozen=True)
class Confinement:
    """A level that is ready to be enforced."""

    terms: Terms
    program: bytes
    """The compiled filter of system calls; empty at level `none`."""
    enforced: list[str] = field(default_factory=list)
    """Names of the enforced layers."""
    has_disk: bool = False
    """True if the kernel keeps scratch folders within their limits; otherwise they must be watched."""

    def enforce(self, limits: resources.WorkerLimits, scratch_folder: str | None) -> None:
        """Confine this process for good. If any layer raises OSError, no student's code may run."""
        cuda = self.terms.cuda
        resources.limit(limits, cuda=cuda, counts_threads=self.terms.level == "A")
        if self.terms.level != "none":
            process.set_visible(True)
            restrict_files(self.terms.readable, scratch_folder, self.terms.devices, allow_ioctl=cuda)
            system_calls.load(self.program, os.getpid())


def prepare(terms: Terms) -> Confinement:
    """Make this process, which is to fork workers, ready for a level; raises CannotConfine."""
    if terms.level == "none":
        return Confinement(terms, b"", ["rlimits"])
    version, least = landlock_version(), LEAST_LANDLOCK[terms.level]
    if version < least:
        raise CannotConfine(f"Level {terms.level} needs Landlock version {least}; here it is {version or 'off'}.")
    is_wrapped = terms.level == "A"
    if is_wrapped and os.getpid() != 1:
        raise CannotConfine("Level A needs a process namespace of its own.")
    has_disk = bool(terms.scratch) and scratch.mount(str(terms.scratch), terms.scratch_bytes, has_namespace=is_wrapped)
    try:
        program = system_calls.compile_filter(cuda=terms.cuda)
        process.drop_privileges()
    except (ImportError, OSError, RuntimeError) as error:
        raise CannotConfine(f"Level {terms.level} is not available: {error}.") from None
    around, disk = ["bubblewrap"] if is_wrapped else [], ["tmpfs"] if has_disk else []
    return Confinement(terms, program, [*around, f"Landlock {version}", "seccomp", "rlimits", *disk], has_disk)


def landlock_version() -> int:
    """Return the version of the kernel's Landlock; 0 if the kernel has none, or a container's filter refuses it."""
    try:
        import landlockpy

        return landlockpy.abi_version()
    except (ImportError, OSError):
        return 0


def restrict_files(
    readable: Sequence[str], scratch_folder: str | None, devices: Sequence[str] = DEVICES, *, allow_ioctl: bool = False
) -> None:
    """Restrict this process to reading these files and folders, and to writing in its scratch folder; raises OSError.

    scratch_folder: None to allow no writing. allow_ioctl: on devices, which a GPU's driver needs.
    """
    from landlockpy import AccessFS, Ruleset, fs_for_abi, net_for_abi, scope_for_abi

    version = landlock_version()
    files = fs_for_abi(version)
    on_device = AccessFS.READ_FILE | AccessFS.WRITE_FILE | (AccessFS.IOCTL_DEV if allow_ioctl else AccessFS.NONE)
    with Ruleset(
        handled_fs=files, handled_net=net_for_abi(version), scoped=scope_for_abi(version), best_effort=False
    ) as rules:
        for path in map(Path, readable):
            if path.exists():
                rules.allow_path(path, AccessFS.READ_FILE | (AccessFS.READ_DIR if path.is_dir() else AccessFS.NONE))
        for device in map(Path, devices):
            if device.exists():
                rules.allow_path(device, on_device)
        if scratch_folder is not None:
            special = AccessFS.EXECUTE | AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK | AccessFS.MAKE_SOCK
            rules.allow_path(scratch_folder, files & ~special)
        rules.restrict()

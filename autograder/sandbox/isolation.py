"""Which isolation level can be had here, and what of this machine a worker may see at it."""

import functools
import importlib
import shutil
import site
import subprocess
import sys
import sysconfig
from pathlib import Path

from .confine import files
from .confine.confinement import LEAST_LANDLOCK, Level

_TRIAL_SECONDS = 10
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
_FACTS = ("/etc/ld.so.cache", "/etc/fonts", "/etc/localtime", "/proc/cpuinfo", "/sys/devices/system/cpu")
"""What libraries ask of a machine; without the last two torch takes it for one without vector instructions."""
SCRATCH = "/tmp/scratch"
"""Where scratch folders are made in bubblewrap's sandbox."""
_CUDA_FACTS = "/proc/driver/nvidia"
_CUDA_DEVICES = "/dev/nvidia*"


class NotIsolated(Exception):
    """The level that was asked for cannot be had; `str()` says why and what to do."""


def choose(require: str, *, trust_submissions: bool) -> Level:
    """The level to run at: the required one, or the best there is; raises NotIsolated.

    `none` has to be trusted even where it is required.
    """
    levels: dict[str, list[Level]] = {"best": ["A", "B"], "A": ["A"], "B": ["B"], "none": []}
    wanted = levels[require]
    for level in wanted:
        if not missing(level):
            return level
    if trust_submissions:
        return "none"
    if not wanted:
        raise NotIsolated('No isolation is required, and the submissions are not trusted. Is `require = "none"` meant?')
    reasons = " ".join(f"Level {level}: {missing(level)}" for level in wanted)
    raise NotIsolated(
        f"Submissions cannot be isolated here, so none is run. {reasons} "
        "docs/security.md says what to install. If you trust everyone who wrote them: --trust-submissions."
    )


@functools.cache
def missing(level: Level) -> str:
    """What a level lacks on this machine, in words; empty where nothing."""
    if level == "none":
        return ""
    if sys.platform != "linux":
        return "needs Linux."
    if (landlock := files.landlock_version()) < LEAST_LANDLOCK[level]:
        return f"needs the kernel's Landlock, version {LEAST_LANDLOCK[level]}; here it is {landlock or 'off'}."
    try:
        importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError, OSError):
        return "needs libseccomp (Debian and Ubuntu: apt install libseccomp2)."
    return _without_bubblewrap() if level == "A" else ""


def keep_private(folder: Path) -> None:
    """Raises NotIsolated where a folder lies among what a worker may read."""
    if place := exposed_in(folder):
        raise NotIsolated(f"{folder} lies in {place}, which submissions may read. Move it out of there.")


def exposed_in(folder: Path) -> str | None:
    """The place that a worker may read and that a folder lies in; None where there is none."""
    where = folder.resolve()
    return next((place for place in readable() if where.is_relative_to(Path(place).resolve())), None)


def readable() -> list[str]:
    """The folders and files that a worker may read: the system's programs, Python, and its packages."""
    prefix = [sys.base_prefix, *{sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")}]
    return [
        place for place in dict.fromkeys((*_SYSTEM, *_FACTS, _CUDA_FACTS, *packages(), *prefix)) if Path(place).exists()
    ]


def python() -> str:
    """The interpreter itself, without an environment around it."""
    return str(Path(sys.executable).resolve())


def packages() -> list[str]:
    """The folders with installed packages."""
    own = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return sorted(own if sys.prefix != sys.base_prefix else own | set(site.getsitepackages()))


def devices(*, cuda: bool) -> list[str]:
    """The devices that a worker may use."""
    pattern = Path(_CUDA_DEVICES)
    return [*files.DEVICES, *(str(device) for device in pattern.parent.glob(pattern.name) if cuda and device.exists())]


def bubblewrapped(command: list[str], room: Path, scratch_bytes: int, *, cuda: bool) -> list[str]:
    """The command in namespaces of its own, in which nothing is but what it may read, and a small /tmp.

    It is process 1 there, so that with it everything else ends. It sees no /proc: a process that could read
    that would learn of the others. With cuda it does, and only workers do not: the driver starts by reading there,
    before a worker is confined.
    """
    seen = ["--proc", "/proc"] if cuda else []
    for place in map(Path, readable()):
        if cuda and place.is_relative_to("/proc"):
            continue
        if place.is_symlink():  # /bin and /lib, on most systems; Python's own folder, on some
            seen += ["--ro-bind", str(place.resolve()), str(place.resolve())]
            seen += ["--symlink", str(place.readlink()), str(place)]
        else:
            seen += ["--ro-bind", str(place), str(place)]
    for device in devices(cuda=cuda):
        seen += ["--dev-bind", device, device]
    return [
        *(
            shutil.which("bwrap") or "bwrap",
            "--unshare-all",
            "--as-pid-1",
            "--die-with-parent",
            "--new-session",
            *(
                "--cap-drop",
                "ALL",
                "--cap-add",
                "CAP_SYS_ADMIN",
            ),  # for `scratch_disk`, and then dropped
        ),
        *("--size", str(scratch_bytes), "--tmpfs", "/tmp"),  # first: some of the rest may lie in /tmp
        *("--dir", SCRATCH),
        *seen,
        *("--ro-bind", str(room), str(room), "--chdir", "/tmp"),
        *command,
    ]


def _without_bubblewrap() -> str:
    if shutil.which("bwrap") is None:
        return "needs bubblewrap (Debian and Ubuntu: apt install bubblewrap)."
    trial = bubblewrapped([python(), "-S", "-c", ""], Path("/usr"), 1 << 20, cuda=False)
    try:
        done = subprocess.run(trial, capture_output=True, text=True, timeout=_TRIAL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here ({error})."
    if done.returncode:
        return f"bubblewrap may not make namespaces here ({done.stderr.strip() or done.returncode})."
    return ""

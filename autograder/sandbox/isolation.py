"""The isolation level: the best one that this machine allows, the files that a worker may read, and a self-test."""

import functools
import importlib
import os
import shutil
import site
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import temporary
from .confine.confinement import DEVICES, LEAST_LANDLOCK, Level, landlock_version
from .worker.attempts import Bait

_TRIAL_SECONDS = 10
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
_FACTS = ("/etc/ld.so.cache", "/etc/fonts", "/etc/localtime", "/proc/cpuinfo", "/sys/devices/system/cpu")
"""Files in which libraries read properties of the machine; from the last two, torch learns its vector instructions."""
SCRATCH = "/tmp/scratch"
"""The folder that contains the scratch folders, at level A."""
_CUDA_FACTS = "/proc/driver/nvidia"
_CUDA_DEVICES = "nvidia*"
_SECRET = b"nothing that a submission may read"


class NotIsolated(Exception):
    """Raised if the required isolation level is not available; `str()` says why and what to do."""


class NotDenied(Exception):
    """Raised if a confined worker could do what it must not; `str()` names these actions."""


def choose(require: str, *, trust_submissions: bool) -> Level:
    """Return the isolation level to run at: the required one or, for `best`, the best available; raises NotIsolated.

    require: `best`, `A`, `B` or `none`. trust_submissions: use level `none` if the required one is not available. Level
    `none` is never used without it.
    """
    levels: dict[str, list[Level]] = {"best": ["A", "B"], "A": ["A"], "B": ["B"], "none": []}
    for level in levels[require]:
        if not missing(level):
            return level
    if trust_submissions:
        return "none"
    if not levels[require]:
        raise NotIsolated('No isolation is required, and the submissions are not trusted. Is `require = "none"` meant?')
    reasons = " ".join(f"Level {level}: {missing(level)}" for level in levels[require])
    raise NotIsolated(
        f"Submissions cannot be isolated here, so none is run. {reasons} "
        "docs/security.md says what to install. If you trust everyone who wrote them: --trust-submissions."
    )


@functools.cache
def missing(level: Level) -> str:
    """Return what an isolation level needs that this machine lacks, in a sentence; empty if the level is available."""
    if level == "none":
        return ""
    if sys.platform != "linux":
        return "needs Linux."
    if (version := landlock_version()) < LEAST_LANDLOCK[level]:
        return f"needs the kernel's Landlock, version {LEAST_LANDLOCK[level]}; here it is {version or 'off'}."
    try:
        importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError, OSError):
        return "needs libseccomp (Debian and Ubuntu: apt install libseccomp2)."
    return _missing_bubblewrap() if level == "A" else ""


def _missing_bubblewrap() -> str:
    if shutil.which("bwrap") is None:
        return "needs bubblewrap (Debian and Ubuntu: apt install bubblewrap)."
    trial = wrap_in_bubblewrap([python(), "-S", "-c", ""], Path("/usr"), 1 << 20, cuda=False)
    try:
        result = subprocess.run(trial, capture_output=True, text=True, timeout=_TRIAL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here ({error})."
    if result.returncode:
        return f"bubblewrap may not make namespaces here ({result.stderr.strip() or result.returncode})."
    return ""


def keep_private(folder: Path) -> None:
    """Raise NotIsolated if workers may read a folder."""
    if place := exposed_in(folder):
        raise NotIsolated(f"{folder} lies in {place}, which submissions may read. Move it out of there.")


def exposed_in(folder: Path) -> str | None:
    """Return the folder through which workers may read the given one; None if they may not."""
    path = folder.resolve()
    return next((place for place in readable() if path.is_relative_to(Path(place).resolve())), None)


def readable() -> list[str]:
    """Return the paths of folders and files that a worker may read: the system's programs, Python, and its packages."""
    prefix = [sys.base_prefix, *{sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")}]
    paths = dict.fromkeys((*_SYSTEM, *_FACTS, _CUDA_FACTS, *packages(), *prefix))
    return [path for path in paths if Path(path).exists()]


def python() -> str:
    """Return the path of the Python interpreter itself, not of a virtual environment's link to it."""
    return str(Path(sys.executable).resolve())


def packages() -> list[str]:
    """Return the folders that contain Python's installed packages."""
    own = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return sorted(own if sys.prefix != sys.base_prefix else own | set(site.getsitepackages()))


def devices(*, cuda: bool) -> list[str]:
    """Return the paths of the devices that a worker may use; with `cuda`, also of NVIDIA's."""
    return [*DEVICES, *(str(device) for device in Path("/dev").glob(_CUDA_DEVICES) if cuda and device.exists())]


def wrap_in_bubblewrap(command: list[str], folder: Path, scratch_bytes: int, *, cuda: bool) -> list[str]:
    """Return a command that runs `command` in bubblewrap: in namespaces with only readable files and a small /tmp.

    folder: a further readable folder. scratch_bytes: the size of /tmp. The process has id 1 in its namespace, so that
    all its descendants end with it. There is no /proc, which describes other processes. With `cuda` there is one,
    because the driver reads it when it starts; workers still cannot read it.
    """
    mounts = ["--proc", "/proc"] if cuda else []
    for path in map(Path, readable()):
        if cuda and path.is_relative_to("/proc"):
            continue
        target = path.resolve() if path.is_symlink() else path
        mounts += ["--ro-bind", str(target), str(target)]
        if path.is_symlink():  # /bin and /lib, on most systems; Python's own folder, on some
            mounts += ["--symlink", str(path.readlink()), str(path)]
    for device in devices(cuda=cuda):
        mounts += ["--dev-bind", device, device]
    return [
        shutil.which("bwrap") or "bwrap",
        *("--unshare-all", "--as-pid-1", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"),  # for `scratch.mount`, and then dropped
        *("--size", str(scratch_bytes), "--tmpfs", "/tmp"),  # first: some of the rest may lie in /tmp
        *("--dir", SCRATCH),
        *mounts,
        *("--ro-bind", str(folder), str(folder), "--chdir", "/tmp"),
        *command,
    ]


def verify_denials(ask: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """Let a confined worker attempt all actions that must be denied, and return the number of attempts.

    ask: sends one request, given its header, to a worker that has run no student's code, and returns the answer's
    header. This process checks the effects, too. Raises NotDenied if an attempt succeeded.
    """
    with (
        temporary.held("bait-") as folder,
        closing(socket.create_server(("127.0.0.1", 0))) as port,
        closing(socket.socket(socket.AF_UNIX)) as local,
    ):
        file = folder / "secret"
        file.write_bytes(_SECRET)
        before = _properties(file)
        local.bind(f"{folder}/socket")
        for listener in (port, local):
            listener.listen()
            listener.setblocking(False)
        bait = Bait(str(file), port.getsockname()[1], f"{folder}/socket", os.getpid())
        answer = ask({"operation": "attempts", "bait": asdict(bait)})
        possible = [str(name) for name in answer["succeeded"]]
        if not file.exists() or file.read_bytes() != _SECRET or _properties(file) != before:
            possible.append("a change of a file")
        if len(list(folder.iterdir())) != 2:
            possible.append("a new file")
        if any(map(_was_reached, (port, local))):
            possible.append("a connection")
    if possible:
        raise NotDenied(
            f"The sandbox does not hold here: {', '.join(possible)} was possible. Nothing is graded. "
            "docs/security.md says what each level needs; choose another level with --require-isolation."
        )
    return int(answer["tried"])


def _properties(file: Path) -> tuple[int, ...]:
    status = file.stat()
    return status.st_mode, status.st_size, status.st_mtime_ns


def _was_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True

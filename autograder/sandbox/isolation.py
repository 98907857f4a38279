"""Isolated Python processes, at the best level that this machine allows: the choice of the level, start and self-test.

These processes are the fork server, and the one that formats students' texts for feedback pages. This module does not
import torch, so that a caller can import torch while the fork server does.
"""

import contextlib
import functools
import importlib
import json
import os
import shutil
import site
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .confine import scratch
from .confine.confinement import DEVICES, LEAST_LANDLOCK, Bait, Level, Terms, landlock_version
from .limits import Limits

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
        scratch.temporary_folder("bait-") as folder,
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


CHECK = "exercise_check"
"""Name of the module from which notebooks import the student check, unless the course sets another."""
_PACKAGE = Path(__file__).parents[1]
_ENVIRONMENT = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONWARNINGS": "ignore"}  # warnings never change a grade


@dataclass(frozen=True)
class ConfinedProcess:
    """A running confined process, the control connection to it, and the folder with its code."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    folder: Path

    def end(self, seconds: float) -> None:
        """Close the connection, kill the process if it has not ended after `seconds`, and delete its folder."""
        self.control.close()
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError):  # at worst a folder remains, which a later run removes
            scratch.remove_temporary(self.folder)


def start(
    code: str,
    folder: Path,
    level: Level,
    environment: Mapping[str, str],
    *,
    scratch_bytes: int,
    cuda: bool = False,
    own_session: bool = False,
) -> ConfinedProcess:
    """Start a Python process that runs `code` in `folder`, with only the given environment and a few fixed variables.

    The last item of the process's sys.argv is the descriptor of its end of the control connection. scratch_bytes: the
    size of /tmp at level A. own_session: keep Ctrl-C in a terminal from reaching the process.

    If the process cannot be started, its folder is removed and OSError raised. -S leaves out the .pth files of
    site-packages, one of which may put this repository on the path.
    """
    control, far_end = socket.socketpair()
    command = [python(), "-P", "-s", "-S", "-B", "-c", code, str(far_end.fileno())]
    if level == "A":
        command = wrap_in_bubblewrap(command, folder, scratch_bytes, cuda=cuda)
    with far_end:
        try:
            process = subprocess.Popen(
                command,
                pass_fds=[far_end.fileno()],
                cwd=folder,
                env={**_ENVIRONMENT, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=own_session,
            )
        except OSError:
            control.close()
            scratch.remove_temporary(folder)
            raise
    return ConfinedProcess(process, control, folder)


def copy_packages(names: Iterable[str], folder: Path) -> None:
    """Copy packages of autograder into a new package at `folder`. names: the packages' paths below autograder/."""
    folder.mkdir()
    for name in names:
        shutil.copytree(_PACKAGE / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for parent in (folder / name).relative_to(folder).parents:
            (folder / parent / "__init__.py").touch()


@dataclass(frozen=True)
class Launched:
    """A fork server that is starting, and its settings."""

    confined: ConfinedProcess
    level: Level
    limits: Limits
    cuda: bool
    check: str
    """Name of the module from which notebooks import the student check."""
    core: int | None
    """Number of the processor that workers stay on; None lets the system choose."""

    def launch_again(self) -> "Launched":
        """Launch another fork server with the same settings."""
        return launch(self.level, self.limits, cuda=self.cuda, check=self.check, core=self.core)


def launch(level: Level, limits: Limits, *, cuda: bool, check: str = CHECK, core: int | None = None) -> Launched:
    """Start a fork server. It imports a copy of the worker's packages, which is deleted before any student's code runs.

    check, core: see `Launched`. Raises NotIsolated if it cannot be started.
    """
    scratch.clear_abandoned()
    folder = scratch.make_temporary("autograder-")
    copy_packages(("core", "sandbox/confine", "sandbox/worker"), folder / "inside")
    (folder / "home").mkdir()
    home = "/tmp" if level == "A" else str(folder / "home")
    scratch_folder = SCRATCH if level == "A" else home
    terms = Terms(level, readable(), scratch_folder, limits.scratch_bytes, devices(cuda=cuda), cuda)
    code = f"""
import gc, json, sys
gc.disable()
sys.path[:0] = [{str(folder)!r}]
sys.path += {packages()!r}
from inside.sandbox.worker.fork_loop import main
from inside.sandbox.confine.confinement import Terms
sys.path.remove({str(folder)!r})
main(int(sys.argv.pop()), Terms(**json.loads({json.dumps(asdict(terms))!r})), {check!r})
"""
    environment = {
        "HOME": home,
        "MPL_IGNORE_SYSTEM_FONTS": "1",  # or matplotlib reads every font of the machine at each start
        "TMPDIR": home,
        "LOGNAME": "student",
        "MPLBACKEND": "Agg",
        "TORCH_COMPILE_DISABLE": "1",  # there is no compiler here; torch.compile leaves a function as it is
        # A fork carries no threads over, so no pool may have been started before it.
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        # Large pages, if the kernel has them, make the table of pages smaller, which each fork copies.
        # One arena, because a second has 64 MB of address space, in which a worker could exceed its memory limit.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1",
        "PYTHONHASHSEED": "0",  # sets are walked in the same order each time, so grades repeat
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # needed for deterministic CUDA
    }
    try:
        confined = start(code, folder, level, environment, scratch_bytes=limits.scratch_bytes, cuda=cuda)
    except OSError as error:
        raise NotIsolated(f"The sandbox could not be started: {error}.") from None
    return Launched(confined, level, limits, cuda, check, core)

"""Start confined Python processes: the fork server, and the process that formats students' texts for feedback pages.

This module does not import torch, so that a caller can import torch while the fork server does.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from . import isolation, temporary
from .confine.confinement import Level, Terms
from .limits import Limits

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
            temporary.remove(self.folder)


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
    command = [isolation.python(), "-P", "-s", "-S", "-B", "-c", code, str(far_end.fileno())]
    if level == "A":
        command = isolation.wrap_in_bubblewrap(command, folder, scratch_bytes, cuda=cuda)
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
            temporary.remove(folder)
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
    temporary.clear()
    folder = temporary.make("autograder-")
    copy_packages(("core", "sandbox/confine", "sandbox/worker"), folder / "inside")
    (folder / "home").mkdir()
    home = "/tmp" if level == "A" else str(folder / "home")
    scratch = isolation.SCRATCH if level == "A" else home
    devices = isolation.devices(cuda=cuda)
    terms = Terms(level, isolation.readable(), scratch, limits.scratch_bytes, devices, cuda)
    code = f"""
import gc, json, sys
gc.disable()
sys.path[:0] = [{str(folder)!r}]
sys.path += {isolation.packages()!r}
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
        raise isolation.NotIsolated(f"The sandbox could not be started: {error}.") from None
    return Launched(confined, level, limits, cuda, check, core)

"""Starts the warm parent's process. Imports no torch, so that a caller's own imports run beside the parent's."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from . import isolation
from .inside.confinement import Level, Terms
from .limits import Limits

_INSIDE = Path(__file__).parent / "inside"


@dataclass(frozen=True)
class Launched:
    """A warm parent on its way: its process, the control connection to it, its folder, and the terms."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    room: Path
    level: Level
    limits: Limits
    cuda: bool
    core: int | None
    """The processor that workers keep to; None leaves them to the system."""

    def again(self) -> "Launched":
        """Another one on the same terms."""
        return launch(self.level, self.limits, cuda=self.cuda, core=self.core)


def launch(level: Level, limits: Limits, *, cuda: bool, core: int | None = None) -> Launched:
    """Starts Python on a copy of `inside/` alone, which is deleted again before any student's code runs.

    -S leaves out the .pth files of site-packages, one of which may put this repository on the path; the
    packages themselves are named instead. The environment is made here, from nothing.
    """
    room = Path(tempfile.mkdtemp(prefix="autograder-"))
    shutil.copytree(_INSIDE, room / "inside", ignore=shutil.ignore_patterns("__pycache__"))
    home = room / "home"
    home.mkdir()
    control, far_end = socket.socketpair()
    terms = Terms(level, isolation.readable(), isolation.devices(cuda=cuda), cuda)
    start = f"""
import json, sys
sys.path[:0] = [{str(room)!r}]
sys.path += {isolation.packages()!r}
from inside.warm_parent import main
from inside.confinement import Terms
sys.path.remove({str(room)!r})
main({far_end.fileno()}, Terms(**json.loads({json.dumps(asdict(terms))!r})))
"""
    command = [isolation.python(), "-P", "-s", "-S", "-B", "-c", start]
    if level == "A":
        command = isolation.bubblewrapped(command, room, limits.scratch_bytes, cuda=cuda)
        home = Path("/tmp")
    environment = {
        "PATH": os.defpath,
        "HOME": str(home),
        "TMPDIR": str(home),
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "TORCH_COMPILE_DISABLE": "1",  # there is no compiler here; torch.compile leaves a function as it is
        # Memory in pages of 2 MB where the kernel has them: to fork a worker and to end it takes a third of the time.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "PYTHONMALLOC": "malloc",
        # A fork carries no threads over, so no pool may have been started before it.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",  # a set is walked in the same order each time, so a mark repeats
        "PYTHONWARNINGS": "ignore",  # warnings never change a mark
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # what deterministic CUDA needs
    }
    with far_end:
        try:
            process = subprocess.Popen(
                command,
                pass_fds=[far_end.fileno()],
                cwd=room,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        except OSError as error:
            control.close()
            shutil.rmtree(room)
            raise isolation.NotIsolated(f"The sandbox could not be started: {error}.") from None
    return Launched(process, control, room, level, limits, cuda, core)

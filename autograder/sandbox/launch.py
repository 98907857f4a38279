"""Starts the warm parent's process. Imports no torch, so that a caller's own imports run beside the parent's."""

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

_INSIDE = Path(__file__).parent / "inside"


@dataclass(frozen=True)
class Launched:
    """A warm parent on its way: its process, the control connection to it, and its folder."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    room: Path


def launch() -> Launched:
    """Starts Python on a copy of `inside/` alone, which is gone again when student's code first runs.

    -S leaves out the .pth files of site-packages, one of which may put this repository on the path; the
    packages themselves are named instead. The environment is made here, from nothing.
    """
    room = Path(tempfile.mkdtemp(prefix="autograder-"))
    shutil.copytree(_INSIDE, room / "inside", ignore=shutil.ignore_patterns("__pycache__"))
    home = room / "home"
    home.mkdir()
    packages = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    control, far_end = socket.socketpair()
    start = f"""
import shutil, sys
sys.path[:0] = [{str(room)!r}]
sys.path += {packages!r}
from inside.warm_parent import main
sys.path.remove({str(room)!r})
shutil.rmtree({str(room / "inside")!r})
main({far_end.fileno()})
shutil.rmtree({str(room)!r}, ignore_errors=True)
"""
    environment = {
        "PATH": os.defpath,
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        # A fork carries no threads over, so no pool may have been started before it.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",  # a set is walked in the same order each time, so a mark repeats
        "PYTHONWARNINGS": "ignore",  # warnings never change a mark
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # what deterministic CUDA needs
    }
    with far_end:
        process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-S", "-B", "-c", start],
            pass_fds=[far_end.fileno()],
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    return Launched(process, control, room)

"""The warm parent: imports what notebooks use once, then forks a worker for each submission.

It runs none of the student's code itself and starts no thread: a forked child of a process with a running
thread pool may hang. Over its control connection it is told to fork a worker or to end one.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import site
import socket
import tempfile
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401  (reads the font cache, once)
import torch
from matplotlib import pyplot

from . import protocol, worker
from .arguments import Arguments
from .bench import Bench
from .cells import Notebook
from .confinement import LEVEL, Limits

GRACE = 2.0  # seconds
_PR_SET_CHILD_SUBREAPER = 36


def main(control_fd: int) -> None:
    """Serves the control connection until the trusted side closes it."""
    control = socket.socket(fileno=control_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the trusted side, which then hangs up
    torch.set_num_threads(1)  # before any operator runs
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come to this process, which ends them
    site.sethelper()  # `help`, which -S leaves out
    notebook = Notebook()
    _warm_up()
    scratches: dict[int, str] = {}
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the trusted side may leave at any time
        protocol.send(control, {"isolation": LEVEL})
    while True:
        try:
            request, _ = protocol.receive(control)
        except protocol.ProtocolError:
            break
        if "fork" in request:
            (connection_fd,) = socket.recv_fds(control, 1, 1)[1]
            pid, scratch = _fork(control, connection_fd, request["fork"], notebook)
            scratches[pid] = scratch
            protocol.send(control, {"pid": pid})
        else:
            pid = request["end"]
            ended_by = _end(pid, hung_up=request["hung_up"])
            shutil.rmtree(scratches.pop(pid), ignore_errors=True)
            _end_orphans(scratches.keys())
            protocol.send(control, {"ended_by": ended_by})
    for pid, scratch in scratches.items():
        _end(pid, hung_up=False)
        shutil.rmtree(scratch, ignore_errors=True)
    _end_orphans(())


def _warm_up() -> None:
    """Does what is slow the first time (a dispatch mode imports a thousand modules) once here, not once a worker."""
    bench = Bench({"Linear": torch.nn.Linear})
    layer, inputs = bench.build("Linear", Arguments((2, 2))), Arguments((torch.ones(2, 2),))
    bench.call(layer, inputs)
    bench.probe_device(layer, inputs)
    figure, axes = pyplot.subplots()
    figure.colorbar(axes.imshow([[0.0, 1.0]]), label="weight")
    pyplot.close(figure)


def _fork(control: socket.socket, connection_fd: int, job: dict[str, Any], notebook: Notebook) -> tuple[int, str]:
    scratch = tempfile.mkdtemp(prefix="submission-")
    pid = os.fork()
    if pid:
        os.close(connection_fd)
        return pid, scratch
    try:
        control.close()
        limits = Limits(**job["limits"])
        worker.work(socket.socket(fileno=connection_fd), worker.Job(job["device"], limits, scratch), notebook)
    finally:
        os._exit(0)


def _end(pid: int, *, hung_up: bool) -> int:
    """Kills the worker and what it started; returns the signal that had ended it before, or 0.

    A worker that has hung up is given a moment to be dead, so that what ended it can be told.
    """
    deadline = time.monotonic() + (GRACE if hung_up else 0.0)
    done, status = os.waitpid(pid, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(0.002)
        done, status = os.waitpid(pid, os.WNOHANG)
    if not done:
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what the worker has left running in its group
    if not done:
        os.waitpid(pid, 0)
        return 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _end_orphans(workers: Collection[int]) -> None:
    """Kills what a worker left running outside its group: each is a child of this process by now, or of such a one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while orphans := [pid for pid in map(int, children.read_text().split()) if pid not in workers]:
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

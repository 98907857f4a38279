"""The warm parent: imports what notebooks use once, then forks a worker for each submission.

It runs none of the student's code itself and starts no thread: a forked child of a process with a running
thread pool may hang. Over its control connection it is told to fork a worker or to end one.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import select
import signal
import site
import socket
import sys
import time
import traceback
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import torch

from ...core.arguments import Arguments
from ...core.bench import Bench
from ...core.observed_functions import observe_functions
from ...core.observed_operators import observe_operators
from ...core.operations import Build, Call, ProbeDevice
from ...core.packing import ProtocolError
from ..confine import processor, scratch
from ..confine.confinement import CannotConfine, Confinement, Terms, prepare
from ..confine.resources import WorkerLimits
from . import breakpoints, global_state, protocol, request_loop, warm_up
from .cells import Notebook
from .lazy_import import Later

GRACE = 2.0  # seconds
WATCH_SECONDS = 0.5
_PR_SET_CHILD_SUBREAPER = 36
_KILOBYTE = 1024


def main(control_fd: int, terms: Terms, check: str) -> None:
    """Serves the control connection until the trusted side closes it. check: the module with the notebooks' check."""
    control = socket.socket(fileno=control_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the trusted side, which then hangs up
    torch.set_num_threads(1)  # before any operator runs
    site.sethelper()  # `help`, which -S leaves out
    plots = Later("matplotlib.pyplot")
    matplotlib.get_cachedir()  # decided here, or the first worker would have it in its scratch folder
    notebook = Notebook(check)
    _warm_up(notebook, cuda=terms.cuda)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the trusted side may leave at any time
        try:
            confinement = prepare(terms)
        except CannotConfine as reason:
            protocol.send(control, {"cannot": str(reason)})
            return
        if sys.platform == "linux":  # orphans come to this process, which ends them
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        gc.freeze()  # or a collection in a worker would walk through, and so copy, all that torch has made
        gc.enable()
        protocol.send(control, {"enforced": confinement.enforced})
        _Nursery(control, notebook, confinement, plots).serve()
    os._exit(0)  # to take torch apart would take half a second, and nothing is left to do


@dataclass(frozen=True)
class Ending:
    """What had ended a worker before it was told to end."""

    ended_by: int = 0
    """The signal; 0 where it was none."""
    was_running: bool = False
    """Whether nothing had ended it."""
    most_memory: int = 0
    """The most bytes of memory that it had; 0 where it had not ended."""
    excess: scratch.Excess = ""
    """What it had too much of, and was ended for."""


class _Nursery:
    """The workers that are running, each with its scratch folder."""

    def __init__(self, control: socket.socket, notebook: Notebook, confinement: Confinement, plots: Later) -> None:
        self._plots: Later | None = plots
        self._control = control
        self._notebook = notebook
        self._confinement = confinement
        self._scratches: dict[int, str] = {}
        self._most_bytes: dict[int, int] = {}
        self._excess: dict[int, scratch.Excess] = {}

    def serve(self) -> None:
        """Forks and ends workers as it is told to; leaves none behind."""
        try:
            while True:
                watched = self._scratches and not self._confinement.has_disk
                while not select.select([self._control], [], [], WATCH_SECONDS if watched else None)[0]:
                    self._watch()
                request, _ = protocol.receive(self._control)
                if "fork" in request:
                    (connection_fd,) = socket.recv_fds(self._control, 1, 1)[1]
                    answer = {"pid": self._fork(connection_fd, request["fork"])}
                else:
                    answer = asdict(self._end(request["end"], hung_up=request["hung_up"]))
                protocol.send(self._control, answer)
        except (ProtocolError, OSError):
            for pid in list(self._scratches):
                self._end(pid, hung_up=False)

    def _fork(self, connection_fd: int, job: dict[str, Any]) -> int:
        assert self._confinement.terms.scratch is not None
        processor.keep_to(job["core"])  # which the worker does too, then, and finds the caches warm
        if job["is_one_of_many"] and self._plots is not None:
            warm_up.for_many(self._plots, self._notebook, cuda=self._confinement.terms.cuda)
            self._plots = None
        folder = scratch.make(self._confinement.terms.scratch)
        warm_parent = os.getpid()
        pid = os.fork()
        if pid:
            os.close(connection_fd)
            self._scratches[pid] = folder
            self._most_bytes[pid] = job["scratch_bytes"]
            return pid
        try:
            self._control.close()
            connection = socket.socket(fileno=connection_fd)
            limits = WorkerLimits(**job["limits"])
            request_loop.work(
                connection,
                request_loop.Job(
                    job["device"], limits, folder, warm_parent, job["wrong"], job["spare_memory"], job["imports"]
                ),
                self._notebook,
                self._confinement,
            )
        except Exception:
            traceback.print_exc()  # of our own: the student's are answers
        finally:
            os._exit(0)

    def _watch(self) -> None:
        """Kills a worker that fills the disk; that it is gone is noticed as with any other crash."""
        for pid, folder in self._scratches.items():
            if pid not in self._excess and (excess := scratch.excess(folder, pid, self._most_bytes[pid])):
                self._excess[pid] = excess
                os.kill(pid, signal.SIGKILL)

    def _end(self, pid: int, *, hung_up: bool) -> Ending:
        """Ends a worker, what it started and its scratch folder; returns what had ended it."""
        ending = replace(_killed(pid, hung_up=hung_up), excess=self._excess.pop(pid, ""))
        folder = self._scratches.pop(pid)
        self._end_orphans()
        with contextlib.suppress(OSError):  # at worst a file stays behind; the next submission goes on
            scratch.wipe(folder)
        return ending

    def _end_orphans(self) -> None:
        """Kills what a worker left running outside its group: each is a child of this process, or of such a one."""
        if os.getpid() == 1:  # in a process namespace of its own, which shows no /proc
            if not self._scratches:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    while True:
                        os.waitpid(-1, 0)
            return
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        while orphans := [pid for pid in map(int, _words(children)) if pid not in self._scratches]:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _words(file: Path) -> list[str]:
    """What a file of the kernel's lists; nothing where this is no Linux."""
    return file.read_text().split() if file.exists() else []


def _warm_up(notebook: Notebook, *, cuda: bool) -> None:
    """Does what is slow the first time (a gradient imports a thousand modules) once here, not once a worker.

    cuda: without the gradient, as in `warm_up`.
    """
    breakpoints.ignore()
    notebook.run("", "pass")
    global_state.restore()  # imports what a worker whose search path is gone could not
    observe_operators()
    bench = Bench({"Linear": torch.nn.Linear})
    layer, inputs = bench.ask(Build("Linear", Arguments((2, 2)))), Arguments((torch.ones(2, 2),))
    if not cuda:
        bench.ask(Call(layer, inputs, (torch.ones(2, 2),)))
        bench.ask(ProbeDevice(layer, inputs))
    near, far = socket.socketpair()
    with near, far:
        protocol.send(near, {}, {"0": torch.ones(1)})
        protocol.receive(far)
    importlib.import_module("torch._decomp.decompositions_for_jvp")  # compiles functions whose source is then gone
    observe_functions()  # last, when all is imported


def _killed(pid: int, *, hung_up: bool) -> Ending:
    """Kills a worker and its group; returns what had ended it before.

    A worker that has hung up is given a moment to be dead, so that what ended it can be told.
    """
    deadline = time.monotonic() + (GRACE if hung_up else 0.0)
    done, status, used = os.wait4(pid, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(0.002)
        done, status, used = os.wait4(pid, os.WNOHANG)
    if not done:
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what the worker has left running in its group
    if not done:
        os.waitpid(pid, 0)
        return Ending(was_running=True)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return Ending(ended_by, most_memory=used.ru_maxrss * _KILOBYTE)

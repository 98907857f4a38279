"""The fork server: imports the libraries that notebooks use once, then forks a worker for each submission.

It never runs a student's code. It starts no thread, because a forked child of a process with a running thread pool may
hang. The trusted side sends it `protocol.Job` and `protocol.End` over a control connection.

Before the first fork it does everything that is slow only the first time, so that no worker has to do it.
"""

import contextlib
import gc
import importlib
import io
import os
import select
import signal
import site
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib
import torch

from ...core.arguments import Arguments
from ...core.bench import Bench, Operation
from ...core.library_recorders import observe_functions, observe_operators
from ...core.operations import Build, Call, ProbeDevice
from ...core.packing import ProtocolError, Tensors
from ..confine import process, scratch
from ..confine.confinement import CannotConfine, Confinement, Terms, prepare
from . import global_state, protocol, request_loop
from .cells import Notebook
from .protocol import End, Ending, Job
from .request_loop import Service

GRACE_SECONDS = 2.0
WATCH_SECONDS = 0.5
_KILOBYTE = 1024


class LazyModule:
    """Delays the import of a module, in this process and those it forks, until one of the module's names is used.

    For matplotlib: if only one notebook is graded, it rarely draws a plot.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the module's usual spec with a lazy loader; None for other modules."""
        spec = PathFinder.find_spec(name, path, target) if name == self._name else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec

    def load(self) -> ModuleType:
        """Stop delaying, import the module and return it."""
        sys.meta_path.remove(self)
        return importlib.import_module(self._name)


def prepare_for_one(notebook: Notebook, *, cuda: bool) -> None:
    """Do everything that is slow only the first time, before the first worker is forked.

    For example, the first gradient imports a thousand modules. cuda: compute no gradient, because that would start CUDA
    and a thread for each GPU, and neither works in a fork.
    """
    global_state.ignore_breakpoints()
    notebook.run("", "pass")
    global_state.restore()  # imports modules that a worker without a search path could not import
    observe_operators()
    bench = Bench({"Linear": torch.nn.Linear})
    layer, inputs = bench.ask(Build("Linear", Arguments((2, 2)))), Arguments((torch.ones(2, 2),))
    with_gradient: list[Operation[Any]] = [Call(layer, inputs, (torch.ones(2, 2),)), ProbeDevice(layer, inputs)]
    _answer(Service(notebook, bench), [Call(layer, inputs)] if cuda else with_gradient)
    importlib.import_module("torch._decomp.decompositions_for_jvp")  # compiles functions whose source is then gone
    observe_functions()  # last, when all is imported


def prepare_for_many(plots: LazyModule) -> None:
    """Make later workers fast, before the second one is forked: import the plotting module and draw a plot."""
    gc.disable()
    with contextlib.redirect_stderr(io.StringIO()):  # matplotlib warns that it cannot store a list of fonts
        pyplot = plots.load()
    figure, axes = pyplot.subplots()
    figure.colorbar(axes.imshow([[0.0, 1.0]]), label="weight")
    pyplot.close(figure)
    gc.freeze()
    gc.enable()


def _answer(service: Service, operations: Sequence[Operation[Any]]) -> None:
    """Let a service in this process answer operations over a connection, as a worker does, and discard the answers."""
    near, far = socket.socketpair()
    with near, far:
        for operation in operations:
            tensors: Tensors = {}
            protocol.send(near, operation.packed(tensors), tensors)
            protocol.send(far, *service.answer(*protocol.receive(far)))
            protocol.receive(near)


def main(control_fd: int, terms: Terms, check: str) -> None:
    """Run the fork server until the trusted side closes the control connection.

    control_fd: its descriptor. check: name of the module from which notebooks import the student check.
    """
    control = socket.socket(fileno=control_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the trusted side, which then hangs up
    torch.set_num_threads(1)  # before any operator runs
    site.sethelper()  # `help`, which -S leaves out
    plots = LazyModule("matplotlib.pyplot")
    matplotlib.get_cachedir()  # decided here, or the first worker would have it in its scratch folder
    notebook = Notebook(check)
    prepare_for_one(notebook, cuda=terms.cuda)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the trusted side may leave at any time
        try:
            confinement = prepare(terms)
        except CannotConfine as reason:
            protocol.send(control, {"cannot": str(reason)})
            return
        if sys.platform == "linux":
            process.adopt_orphans()  # and end them
        gc.freeze()  # or a collection in a worker would walk through, and so copy, all that torch has made
        gc.enable()
        protocol.send(control, {"enforced": confinement.enforced})
        _Workers(control, notebook, confinement, plots).serve()
    os._exit(0)  # a normal exit would spend half a second on torch's clean-up


class _Workers:
    """The running workers, each with its scratch folder."""

    def __init__(self, control: socket.socket, notebook: Notebook, confinement: Confinement, plots: LazyModule) -> None:
        self._plots: LazyModule | None = plots
        self._control = control
        self._notebook = notebook
        self._confinement = confinement
        self._folders: dict[int, str] = {}
        self._most_bytes: dict[int, int] = {}
        self._excess: dict[int, scratch.Excess] = {}

    def serve(self) -> None:
        """Fork and end workers on request; end the rest when the trusted side leaves."""
        try:
            while True:
                must_watch = self._folders and not self._confinement.has_disk
                while not select.select([self._control], [], [], WATCH_SECONDS if must_watch else None)[0]:
                    self._watch()
                request, _ = protocol.receive(self._control, form=Job | End)
                if isinstance(request, Job):
                    (connection_fd,) = socket.recv_fds(self._control, 1, 1)[1]
                    protocol.send(self._control, {"pid": self._fork(connection_fd, request)})
                else:
                    protocol.send(self._control, self._end(request))
        except (ProtocolError, OSError):
            for pid in list(self._folders):
                self._end(End(pid, hung_up=False))

    def _fork(self, connection_fd: int, job: Job) -> int:
        terms = self._confinement.terms
        assert terms.scratch is not None
        process.keep_to_processor(job.core)  # the worker inherits that, and the caches are warm
        if self._plots is not None and not job.is_first:
            prepare_for_many(self._plots)
            self._plots = None
        folder = tempfile.mkdtemp(prefix="submission-", dir=terms.scratch)
        fork_server = os.getpid()
        pid = os.fork()
        if pid:
            os.close(connection_fd)
            self._folders[pid] = folder
            self._most_bytes[pid] = job.scratch_bytes
            return pid
        try:
            self._control.close()
            connection = socket.socket(fileno=connection_fd)
            request_loop.work(connection, job, folder, fork_server, self._notebook, self._confinement)
        except Exception:
            traceback.print_exc()  # an error of the autograder: the student's errors are answers
        finally:
            os._exit(0)

    def _watch(self) -> None:
        """Kill each worker whose files exceed a limit; the trusted side notices it like any other crash."""
        for pid, folder in self._folders.items():
            if pid not in self._excess and (excess := scratch.find_excess(folder, pid, self._most_bytes[pid])):
                self._excess[pid] = excess
                os.kill(pid, signal.SIGKILL)

    def _end(self, request: End) -> Ending:
        """End a worker and its child processes, delete its scratch folder, and return what had ended it before."""
        ending = _kill(request)
        ending.excess = self._excess.pop(request.pid, "")
        folder = self._folders.pop(request.pid)
        self._end_orphans()
        with contextlib.suppress(OSError):  # at worst a file stays behind; the next submission goes on
            scratch.wipe(folder)
        return ending

    def _end_orphans(self) -> None:
        """Kill processes that a worker started outside its process group and that still run."""
        if os.getpid() == 1:  # in a process namespace of its own, without /proc
            if not self._folders:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    while True:
                        os.waitpid(-1, 0)
            return
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        # Without /proc this is no Linux, on which orphans do not come to this process.
        while children.exists() and (orphans := set(map(int, children.read_text().split())) - self._folders.keys()):
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _kill(request: End) -> Ending:
    """Kill a worker and its process group; return what had ended it before, if anything had."""
    pid = request.pid
    deadline = time.monotonic() + (GRACE_SECONDS if request.hung_up else 0.0)
    has_ended, status, usage = os.wait4(pid, os.WNOHANG)
    while not has_ended and time.monotonic() < deadline:
        time.sleep(0.002)
        has_ended, status, usage = os.wait4(pid, os.WNOHANG)
    if not has_ended:
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what the worker has left running in its group
    if not has_ended:
        os.waitpid(pid, 0)
        return Ending(was_running=True)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return Ending(ended_by, most_memory=usage.ru_maxrss * _KILOBYTE)

"""The main loop of one worker: runs one notebook's cells, then executes operations on the names that they defined."""

import contextlib
import importlib
import os
import signal
import socket
import sys
import tempfile
from typing import Any

import torch

from ...core import library_calls
from ...core.bench import Bench
from ...core.edit_trials import unpacked
from ...core.observation import Missing, Observation, Raised, StudentFault, raised
from ...core.packing import ProtocolError, Tensors, pack
from ..confine import process
from ..confine.confinement import Bait, Confinement, attempt_all
from . import global_state, protocol
from .cells import Notebook
from .protocol import Job

COMPILER = "torch._dynamo"

# Bound before any cell can replace it.
_synchronize = torch.cuda.synchronize

Answer = tuple[dict[str, Any], Tensors]

_MOST_CHANGES = 5
"""Most changed names that are reported for an exercise."""


def work(
    connection: socket.socket, job: Job, scratch: str, fork_server: int, notebook: Notebook, confinement: Confinement
) -> None:
    """Confine this process, and answer the requests for one submission until the trusted side closes the connection.

    scratch: the worker's scratch folder. fork_server: the id of the process that forked this one. notebook: an unused
    one.
    """
    _settle(job, scratch, fork_server)
    notebook.settle(torch.device(job.device), job.wrong)
    confinement.enforce(job.limits, scratch)
    if job.spare_memory:
        _limit_memory(job)
    pid = os.getpid()
    service = Service(notebook, Bench(notebook.names, job.device))
    while True:
        try:
            header, tensors = protocol.receive(connection)
        except ProtocolError:
            return
        process.allow_cpu(int(header["cpu_seconds"]))
        answer, payload = service.answer(header, tensors)
        if answer.get("fault") and _is_lost(job.device):
            answer["device_lost"] = True
        if os.getpid() != pid:
            os._exit(0)  # a copy that the student's code forked: only one worker answers, once
        number = {"number": header["number"]}
        try:
            protocol.send(connection, {**number, **answer}, payload)
        except OSError:
            return
        except Exception as error:  # a tensor that cannot be encoded, or an object that replaced one
            protocol.send(connection, {"fault": _fault(raised(error)), **number})


def _settle(job: Job, scratch: str, fork_server: int) -> None:
    """Give this process its own session and folder, no terminal, and a limit on the GPU's memory."""
    os.setsid()
    if sys.platform == "linux":  # or a worker that sleeps outlives a fork server that is killed
        process.end_with_parent()
        if os.getppid() != fork_server:
            os._exit(0)  # the fork server was killed before the kernel knew what to do then
    os.chdir(scratch)
    os.environ.update(HOME=scratch, TMPDIR=scratch)
    tempfile.tempdir = None  # chosen again, in the scratch folder
    sys.path.insert(0, scratch)  # as in Jupyter: a module that the notebook wrote can be imported
    if job.device != "cpu":
        whole = torch.cuda.get_device_properties(job.device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, job.limits.memory_bytes / whole))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _limit_memory(job: Job) -> None:
    """Import the job's modules and then limit this process's memory, before any student's code can reserve some."""
    for module in job.imports:
        with contextlib.suppress(Exception):  # the cell that imports the module fails as well, and says so
            importlib.import_module(module)
            if module == COMPILER:
                torch.compile(lambda: None)()  # which imports the rest of it
    process.limit_memory(job.spare_memory)


def _is_lost(device: str) -> bool:
    """Return whether this process can no longer compute on its GPU, for example after an index out of range."""
    if device == "cpu":
        return False
    try:
        _synchronize()
    except Exception:
        return True
    return False


class Service:
    """Answers a worker's requests: runs the notebook's cells, and executes operations on the bench."""

    def __init__(self, notebook: Notebook, bench: Bench) -> None:
        self._notebook = notebook
        self._bench = bench

    def answer(self, header: dict[str, Any], tensors: Tensors) -> Answer:
        """Answer one request; an error in the student's code is returned as an answer."""
        try:
            match header["operation"]:
                case "cell":
                    return self._run_cell(header), {}
                case "ready":
                    return {}, {}
                case "changes":
                    return {"changes": self._notebook.snapshots.changes(header["exercise"])[:_MOST_CHANGES]}, {}
                case "attempts":
                    return attempt_all(Bait(**header["bait"])), {}
            return self._carry_out(header, tensors)
        except StudentFault as fault:
            return {"fault": _fault(fault)}, {}
        except BaseException as error:
            # Inspecting a student's object may run their code: a subclass's methods, a lazy parameter.
            return {"fault": _fault(raised(error))}, {}

    def _run_cell(self, header: dict[str, Any]) -> dict[str, Any]:
        if header.get("checked"):
            self._notebook.snapshots.take(header["checked"])
        if header.get("only_shows"):
            self._notebook.defer(header["cell"], header["source"])
            return {}
        outcome = self._notebook.run(header["cell"], header["source"])
        fault = _fault(outcome.error) if outcome.error else None
        return {"printed": outcome.printed, "fault": fault, "has_changes": self._notebook.snapshots.has_changes}

    def _carry_out(self, header: dict[str, Any], tensors: Tensors) -> Answer:
        global_state.restore()
        if header.get("begins"):
            self._notebook.begin_exercise(header.get("as_checked"))
            self._bench.begin()
            library_calls.take_recorded()  # leaves out the calls by cells, and those for other exercises
        result, payload = self._bench.ask(unpacked(header, tensors)), Tensors()
        if not isinstance(result, Observation):
            return {"value": pack(result, payload)}, payload
        answer = vars(result.mapped(lambda value: pack(value, payload)))
        # Last, because packing may run code: a tuple's `__iter__`, a subclass's `detach`.
        return {**answer, "library_calls": library_calls.take_recorded()}, payload


def _fault(fault: StudentFault) -> dict[str, Any]:
    match fault:
        case Missing(name=name):
            return {"kind": "missing", "name": name}
        case Raised(type_name=type_name, message=message, place=place, kinds=kinds, has_own_words=is_own):
            line = [place.cell, place.line] if place else None
            said = {"message": message, "has_own_words": is_own}
            return {"kind": "raised", "type_name": type_name, **said, "place": line, "kinds": kinds}
    return {"kind": "unusable", "sentence": str(fault)}

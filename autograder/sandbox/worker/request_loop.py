"""One worker: runs one notebook's cells, then answers calls of what they defined, until it is killed."""

import contextlib
import importlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...core import library_calls
from ...core.bench import Bench, Operation
from ...core.faults import Missing, Raised, StudentFault
from ...core.observation import Observation
from ...core.operations import unpacked
from ...core.packing import ProtocolError, Tensors, pack
from ...core.raising import raised
from ...core.wrong_function import PackedFunction
from ..confine import lifetime, resources
from ..confine.confinement import Confinement
from . import attempts, global_state, protocol
from .cells import Notebook

COMPILER = "torch._dynamo"

# Bound before any cell can put something else in its place.
_synchronize = torch.cuda.synchronize

Answer = tuple[dict[str, Any], Tensors]

_MOST_CHANGES = 5
"""Limit for the changed names that are reported for an exercise."""


@dataclass(frozen=True)
class Job:
    """What a worker is told when it is forked."""

    device: str
    limits: resources.WorkerLimits
    scratch: str
    warm_parent: int
    """The process that forked it, without which it has nothing to do."""
    wrong: Mapping[str, PackedFunction]
    """The functions that the unit's hunts are for, by name."""
    spare_memory: int = 0
    """Bytes of address space for the notebook beyond what its imports take; 0 for the usual limit alone."""
    imports: Sequence[str] = ()
    """Installed modules to import before `spare_memory` is counted."""


def work(connection: socket.socket, job: Job, notebook: Notebook, confinement: Confinement) -> None:
    """Serves one submission in an untouched notebook; returns when the trusted side hangs up."""
    _settle(job)
    notebook.settle(torch.device(job.device), job.wrong)
    confinement.enforce(job.limits, job.scratch)
    if job.spare_memory:
        _spare_memory(job)
    pid = os.getpid()
    service = Service(notebook, Bench(notebook.names, job.device))
    while True:
        try:
            header, tensors = protocol.receive(connection)
        except ProtocolError:
            return
        resources.allow_cpu(int(header["cpu_seconds"]))
        answer, payload = service.answer(header, tensors)
        if answer.get("fault") and _is_lost(job.device):
            answer["device_lost"] = True
        if os.getpid() != pid:
            os._exit(0)  # a copy that the student's code forked: one worker answers, once
        number = {"number": header["number"]}
        try:
            protocol.send(connection, {**number, **answer}, payload)
        except OSError:
            return
        except Exception as error:  # a kind of tensor that cannot be written, or what the student put in its place
            protocol.send(connection, {"fault": _fault(raised(error)), **number})


def _settle(job: Job) -> None:
    """A process group, a directory and silence of its own."""
    os.setsid()
    if sys.platform == "linux":  # or what sleeps outlives a warm parent that is killed
        lifetime.end_with_parent()
        if os.getppid() != job.warm_parent:
            os._exit(0)  # it was killed before the system knew what to do then
    os.chdir(job.scratch)
    os.environ.update(HOME=job.scratch, TMPDIR=job.scratch)
    tempfile.tempdir = None  # found anew, in the scratch folder
    sys.path.insert(0, job.scratch)  # as Jupyter has it: a module that the notebook wrote can be imported
    if job.device != "cpu":
        _settle_device(job)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _spare_memory(job: Job) -> None:
    """Limit the memory before any code of the student's runs, so that none can be put aside for later."""
    for module in job.imports:
        with contextlib.suppress(Exception):  # the cell that imports the module fails as well, and says so
            importlib.import_module(module)
            if module == COMPILER:
                torch.compile(lambda: None)()  # which imports the rest of it
    resources.limit_memory(job.spare_memory)


def _settle_device(job: Job) -> None:
    """A limit on the GPU's memory."""
    whole = torch.cuda.get_device_properties(job.device).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, job.limits.memory_bytes / whole))


def _is_lost(device: str) -> bool:
    """Return whether the GPU computes nothing more for this process, as after an index out of range."""
    if device == "cpu":
        return False
    try:
        _synchronize()
    except Exception:
        return True
    return False


class Service:
    """Turns requests into operations on the bench, and what they give into answers; and runs the notebook's cells."""

    def __init__(self, notebook: Notebook, bench: Bench) -> None:
        self._notebook = notebook
        self._bench = bench

    def answer(self, header: dict[str, Any], tensors: Tensors) -> Answer:
        """The answer to one request; a fault of the student's code is an answer too."""
        try:
            match header["operation"]:
                case "cell":
                    return self._cell(header), {}
                case "ready":
                    return {}, {}
                case "changes":
                    return {"changes": self._notebook.snapshots.changes(header["exercise"])[:_MOST_CHANGES]}, {}
                case "attempts":
                    return attempts.make_all(attempts.Bait(**header["bait"])), {}
            global_state.restore()
            if header.get("begins"):
                self._notebook.begin_exercise(header.get("as_checked"))
                self._bench.begin()
                library_calls.taken()  # what ran in the cells, or for another exercise, is no matter of this one
            return self._asked(unpacked(header, tensors))
        except StudentFault as fault:
            return {"fault": _fault(fault)}, {}
        except BaseException as error:
            # Looking at a student's object runs code of theirs too: a subclass's methods, a lazy parameter.
            return {"fault": _fault(raised(error))}, {}

    def _cell(self, header: dict[str, Any]) -> dict[str, Any]:
        if header.get("checked"):
            self._notebook.snapshots.take(header["checked"])
        if header.get("only_shows"):
            self._notebook.set_aside(header["cell"], header["source"])
            return {}
        outcome = self._notebook.run(header["cell"], header["source"])
        fault = _fault(outcome.error) if outcome.error else None
        return {"printed": outcome.printed, "fault": fault, "has_changes": self._notebook.snapshots.has_changes}

    def _asked(self, operation: Operation[Any]) -> Answer:
        given, payload = self._bench.ask(operation), Tensors()
        if not isinstance(given, Observation):
            return {"value": pack(given, payload)}, payload
        answer = vars(given.mapped(lambda value: pack(value, payload)))
        # Last, for what is packed may be computed only now: a tuple's `__iter__`, a subclass's `detach`.
        return {**answer, "library_calls": library_calls.taken()}, payload


def _fault(fault: StudentFault) -> dict[str, Any]:
    match fault:
        case Missing(name=name):
            return {"kind": "missing", "name": name}
        case Raised(type_name=type_name, message=message, place=place, kinds=kinds):
            where = [place.cell, place.line] if place else None
            return {"kind": "raised", "type_name": type_name, "message": message, "place": where, "kinds": kinds}
    return {"kind": "unusable", "sentence": str(fault)}

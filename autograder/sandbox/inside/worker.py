"""One worker: runs one notebook's cells, then answers calls of what they defined, until it is killed."""

import ctypes
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from . import attempts, global_state, library_calls, processor, protocol, resources
from .arguments import Arguments
from .bench import Bench, Observation, raised, seed_generators
from .cells import Notebook
from .confinement import Confinement
from .faults import Missing, Raised, StudentFault

_PR_SET_PDEATHSIG = 1

Answer = tuple[dict[str, Any], protocol.Tensors]


@dataclass(frozen=True)
class Job:
    """What a worker is told when it is forked."""

    device: str
    limits: resources.WorkerLimits
    scratch: str
    core: int | None
    """The processor to keep to; None leaves that to the system."""
    warm_parent: int
    """The process that forked it, without which it has nothing to do."""


def work(connection: socket.socket, job: Job, notebook: Notebook, confinement: Confinement) -> None:
    """Serves one submission in an untouched notebook; returns when the trusted side hangs up."""
    _settle(job)
    notebook.settle()
    confinement.enforce(job.limits, job.scratch)
    pid = os.getpid()
    service = _Service(notebook, Bench(notebook.names, job.device))
    while True:
        try:
            header, tensors = protocol.receive(connection)
        except protocol.ProtocolError:
            return
        resources.allow_cpu(int(header["cpu_seconds"]))
        answer, payload = service.answer(header, tensors)
        if os.getpid() != pid:
            os._exit(0)  # a copy that the student's code forked: one worker answers, once
        number = {"number": header["number"]}
        try:
            protocol.send(connection, {**answer, **number}, payload)
        except OSError:
            return
        except Exception as error:  # a kind of tensor that cannot be written, or what the student put in its place
            protocol.send(connection, {"fault": _fault(raised(error)), **number})


def _settle(job: Job) -> None:
    """A process group, a directory and silence of its own; arithmetic that repeats."""
    os.setsid()
    if sys.platform == "linux":  # or what sleeps outlives a warm parent that is killed
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != job.warm_parent:
            os._exit(0)  # it was killed before the system knew what to do then
    processor.keep_to(job.core)
    os.chdir(job.scratch)
    os.environ.update(HOME=job.scratch, TMPDIR=job.scratch)
    tempfile.tempdir = None  # found anew, in the scratch folder
    sys.path.insert(0, job.scratch)  # as Jupyter has it: a module that the notebook wrote can be imported
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    seed_generators(0, torch.device(job.device))
    if job.device != "cpu":
        torch.use_deterministic_algorithms(True)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False


class _Service:
    """Turns requests into calls of the notebook and the bench, and what they give into answers."""

    def __init__(self, notebook: Notebook, bench: Bench) -> None:
        self._notebook = notebook
        self._bench = bench
        self._operations: dict[str, Callable[[dict[str, Any], protocol.Tensors], Answer]] = {
            "cell": self._cell,
            "kind": self._kind,
            "manual_seed": _done(lambda h, t: bench.manual_seed(h["seed"])),
            "build": self._build,
            "call": self._call,
            "named_parameters": self._named_parameters,
            "load_parameters": _done(lambda h, t: bench.load_parameters(h["instance"], t)),
            "to_dtype": _done(lambda h, t: bench.to_dtype(h["instance"], getattr(torch, h["dtype"]))),
            "train": _done(lambda h, t: bench.train(h["instance"], h["mode"])),
            "probe_device": self._probe_device,
            "attempts": lambda h, t: (attempts.make_all(attempts.Bait(**h["bait"])), {}),
        }

    def answer(self, header: dict[str, Any], tensors: protocol.Tensors) -> Answer:
        """The answer to one request; a fault of the student's code is an answer too."""
        try:
            if header["operation"] != "cell":
                global_state.restore()
            return self._operations[header["operation"]](header, tensors)
        except StudentFault as fault:
            return {"fault": _fault(fault)}, {}
        except BaseException as error:
            # Looking at a student's object runs code of theirs too: a subclass's methods, a lazy parameter.
            return {"fault": _fault(raised(error))}, {}

    def _cell(self, header: dict[str, Any], tensors: protocol.Tensors) -> Answer:
        if header.get("only_shows"):
            self._notebook.set_aside(header["cell"], header["source"])
            return {}, {}
        outcome = self._notebook.run(header["cell"], header["source"])
        return {"printed": outcome.printed, "fault": _fault(outcome.error) if outcome.error else None}, {}

    def _kind(self, header: dict[str, Any], tensors: protocol.Tensors) -> Answer:
        library_calls.taken()  # what ran in the cells, or for another exercise, is no matter of the one that begins
        return {"kind": self._bench.kind(header["name"])}, {}

    def _build(self, header: dict[str, Any], tensors: protocol.Tensors) -> Answer:
        return {"instance": self._bench.build(header["name"], _arguments(header, tensors))}, {}

    def _call(self, header: dict[str, Any], tensors: protocol.Tensors) -> Answer:
        cotangents = protocol.unpack(header["cotangents"], tensors)
        return _observation(self._bench.call(header["target"], _arguments(header, tensors), cotangents))

    def _named_parameters(self, header: dict[str, Any], tensors: protocol.Tensors) -> Answer:
        payload: protocol.Tensors = {}
        parameters = self._bench.named_parameters(header["instance"])
        return {"parameters": protocol.pack(parameters, payload)}, payload

    def _probe_device(self, header: dict[str, Any], tensors: protocol.Tensors) -> Answer:
        return {"verdict": self._bench.probe_device(header["target"], _arguments(header, tensors))}, {}


def _arguments(header: dict[str, Any], tensors: protocol.Tensors) -> Arguments:
    positional, named = protocol.unpack(header["arguments"], tensors)
    return Arguments(tuple(positional), named)


def _done(do: Callable[[dict[str, Any], protocol.Tensors], None]) -> Callable[..., Answer]:
    """An operation that answers nothing but that it is done."""

    def operation(header: dict[str, Any], tensors: protocol.Tensors) -> Answer:
        do(header, tensors)
        return {}, {}

    return operation


def _observation(seen: Observation) -> Answer:
    payload: protocol.Tensors = {}
    answer = {
        "value": protocol.pack(seen.value, payload),
        "changed": seen.changed,
        "devices": seen.devices,
        "gradients": protocol.pack(seen.gradients, payload),
        "parameter_gradients": protocol.pack(seen.parameter_gradients, payload),
    }
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

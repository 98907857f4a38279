"""A student's notebook in the sandbox: runs its cells, passes calls on, and starts a new worker where one was lost.

A hang or a crash costs what hung or crashed alone: the next request forks a fresh worker and runs the notebook's
cells again, without the one that did not come back.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import torch

from ..notebook import MAX_CHARACTERS, CodeCell
from ..report import CellReport
from ..sandbox.inside import protocol
from ..sandbox.inside.arguments import Arguments
from ..sandbox.inside.bench import Kind, Observation, Target
from ..sandbox.inside.faults import Missing, Place, Raised, StudentFault, Unusable
from ..sandbox.server import Crashed, SandboxLost, TimedOut, WarmParent, Worker

MAX_NAME, MAX_NAMES = 100, 20
MAX_PRINTED = 10_100
"""Characters of a cell's output, with the note that there was more."""
MAX_RECEIVED_BYTES = 256 << 20
"""Of tensors, in all the answers of one worker; right ones send a few hundred thousand."""

T = TypeVar("T")


class OutOfBudget(Exception):
    """This submission has had all the restarts, or all the time, that it gets."""


class _Fault(msgspec.Struct):
    kind: str
    name: str = ""
    type_name: str = ""
    message: str = ""
    sentence: str = ""
    place: tuple[str, int] | None = None
    kinds: list[str] = []

    def raised(self) -> StudentFault:
        if self.kind == "missing":
            return Missing(self.name[:MAX_NAME])
        if self.kind == "raised":
            return Raised(self.type_name, self.message, self._place(), self.kinds[:MAX_NAMES])
        return Unusable(self.sentence)

    def _place(self) -> Place | None:
        return Place(self.place[0][:MAX_NAME], self.place[1]) if self.place else None


class _Answer(msgspec.Struct):
    """Every field that any answer has; what is not there stays at its default."""

    fault: _Fault | None = None
    printed: str = ""
    kind: Kind = "function"
    instance: int = -1
    verdict: str = ""
    value: Any = None
    changed: list[int] = []
    devices: list[str] = []
    gradients: Any = None
    parameter_gradients: Any = None
    library_calls: list[str] = []
    parameters: Any = None


class SandboxedNotebook:
    """One submission's code as a backend for `Student`. Close it when the submission is marked."""

    def __init__(self, parent: WarmParent, cells: Sequence[CodeCell], device: str) -> None:
        self._parent = parent
        self._cells = cells
        self._device = device
        self._limits = parent.limits
        self._worker: Worker | None = None
        self._restarts_left = self._limits.restarts
        self._deadline = time.monotonic() + self._limits.submission_wall_seconds
        self._received = 0
        self._outcomes: dict[int, CellReport] = {}

    def run_cells(self) -> list[CellReport]:
        """Runs the notebook from top to bottom; what each cell did."""
        try:
            while self._worker is None:
                self._restart()
        except OutOfBudget:
            for number, cell in enumerate(self._cells):
                lost = CellReport(
                    cell.name, "timeout", "Not run: what came before it used up the time that a notebook has.", ""
                )
                self._outcomes.setdefault(number, lost)
        return [self._outcomes[number] for number in range(len(self._cells))]

    def close(self) -> None:
        """Ends the worker, if one is running."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def kind(self, name: str) -> Kind:
        return self._ask({"operation": "kind", "name": name})[0].kind

    def manual_seed(self, seed: int) -> None:
        self._ask({"operation": "manual_seed", "seed": seed})

    def build(self, name: str, arguments: Arguments) -> int:
        tensors: protocol.Tensors = {}
        packed = _packed(arguments, tensors)
        return self._ask({"operation": "build", "name": name, "arguments": packed}, tensors)[0].instance

    def call(
        self, target: Target, arguments: Arguments, cotangents: tuple[torch.Tensor, ...] | None = None
    ) -> Observation:
        tensors: protocol.Tensors = {}
        header = {
            "operation": "call",
            "target": target,
            "arguments": _packed(arguments, tensors),
            "cotangents": protocol.pack(cotangents, tensors),
        }
        answer, payload = self._ask(header, tensors)
        return self._understood(
            lambda: _observation(answer, payload, len(arguments.positional), cotangents is not None)
        )

    def named_parameters(self, instance: int) -> dict[str, torch.Tensor]:
        answer, payload = self._ask({"operation": "named_parameters", "instance": instance})
        return self._understood(lambda: _tensors_by_name(answer.parameters, payload))

    def load_parameters(self, instance: int, values: Mapping[str, torch.Tensor]) -> None:
        tensors = {name: value.contiguous() for name, value in values.items()}
        self._ask({"operation": "load_parameters", "instance": instance}, tensors)

    def to_dtype(self, instance: int, dtype: torch.dtype) -> None:
        self._ask({"operation": "to_dtype", "instance": instance, "dtype": str(dtype).removeprefix("torch.")})

    def train(self, instance: int, mode: bool) -> None:
        self._ask({"operation": "train", "instance": instance, "mode": mode})

    def probe_device(self, target: Target, arguments: Arguments) -> str:
        tensors: protocol.Tensors = {}
        packed = _packed(arguments, tensors)
        return self._ask({"operation": "probe_device", "target": target, "arguments": packed}, tensors)[0].verdict

    def _restart(self) -> None:
        """Forks a worker and runs the cells that are not known to hang or crash; leaves no worker where one does."""
        if self._restarts_left < 0:
            raise OutOfBudget
        self._restarts_left -= 1
        self._received = 0
        self._worker = self._parent.fork(self._device)
        for number, cell in enumerate(self._cells):
            self._check_time()
            before = self._outcomes.get(number)
            if before and before.status in ("timeout", "crashed"):
                continue
            self._outcomes[number] = self._run_cell(cell)
            if self._worker is None:
                return

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            self.close()
            raise OutOfBudget

    def _run_cell(self, cell: CodeCell) -> CellReport:
        if len(cell.source) > MAX_CHARACTERS:
            message = f"The cell has {len(cell.source)} characters, more than {MAX_CHARACTERS}; it was not run."
            return CellReport(cell.name, "failed", message, "")
        header = {"operation": "cell", "cell": cell.name, "source": cell.source, "only_shows": cell.only_shows}
        try:
            answer, _ = self._request(header, {}, self._limits.cell_cpu_seconds)
        except TimedOut:
            seconds = self._limits.cell_cpu_seconds
            message = (
                f"It did not finish in {seconds} seconds of computing, or {seconds * self._limits.wall_factor} of "
                "waiting. Does a loop in it never end?"
            )
            return CellReport(cell.name, "timeout", message, "")
        except Crashed:
            message = "This cell ended Python itself, so it and nothing after it in that run could be used."
            return CellReport(cell.name, "crashed", message, "")
        if answer.fault:
            return CellReport(cell.name, "failed", str(answer.fault.raised()), answer.printed[:MAX_PRINTED])
        return CellReport(cell.name, "set_aside" if cell.only_shows else "ran", "", answer.printed[:MAX_PRINTED])

    def _ask(self, header: dict[str, Any], tensors: protocol.Tensors | None = None) -> tuple[_Answer, protocol.Tensors]:
        self._check_time()
        while self._worker is None:
            self._restart()
        answer, payload = self._request(header, tensors or {}, self._limits.call_cpu_seconds)
        if answer.fault:
            raise answer.fault.raised()
        return answer, payload

    def _request(
        self, header: dict[str, Any], tensors: protocol.Tensors, cpu_seconds: int
    ) -> tuple[_Answer, protocol.Tensors]:
        assert self._worker is not None
        try:
            raw, payload = self._worker.request(header, tensors, cpu_seconds=cpu_seconds)
        except (TimedOut, Crashed, SandboxLost):
            self._worker = None
            raise
        self._received += sum(tensor.nbytes for tensor in payload.values())
        if self._received > MAX_RECEIVED_BYTES:
            self.close()
            raise Crashed
        return self._understood(lambda: msgspec.convert(raw, _Answer)), payload

    def _understood(self, read: Callable[[], T]) -> T:
        """Reads what came from the untrusted side; nonsense there is a crash, and ends the worker."""
        try:
            return read()
        except (protocol.ProtocolError, msgspec.ValidationError, TypeError, ValueError):
            self.close()
            raise Crashed from None


def _packed(arguments: Arguments, tensors: protocol.Tensors) -> Any:
    return protocol.pack((arguments.positional, dict(arguments.named)), tensors)


def _observation(answer: _Answer, payload: protocol.Tensors, arity: int, differentiated: bool) -> Observation:
    gradients = protocol.unpack(answer.gradients, payload)
    parameter_gradients = protocol.unpack(answer.parameter_gradients, payload)
    well_formed = (
        isinstance(gradients, list)
        and len(gradients) == (arity if differentiated else 0)
        and isinstance(parameter_gradients, dict)
        and all(
            gradient is None or isinstance(gradient, torch.Tensor | protocol.Opaque)
            for gradient in (*gradients, *parameter_gradients.values())
        )
        and all(0 <= position < arity for position in answer.changed)
        and len(set(answer.changed)) == len(answer.changed)
        and len(answer.devices) <= MAX_NAMES
        and len(answer.library_calls) <= MAX_NAMES
    )
    if not well_formed:
        raise protocol.ProtocolError("an observation is not in the protocol's form")
    return Observation(
        protocol.unpack(answer.value, payload),
        answer.changed,
        answer.devices,
        gradients,
        parameter_gradients,
        answer.library_calls,
    )


def _tensors_by_name(packed: Any, payload: protocol.Tensors) -> dict[str, torch.Tensor]:
    parameters = protocol.unpack(packed, payload)
    if not isinstance(parameters, dict) or not all(isinstance(t, torch.Tensor) for t in parameters.values()):
        raise protocol.ProtocolError("parameters are not in the protocol's form")
    return parameters

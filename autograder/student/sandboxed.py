"""A student's notebook in the sandbox: runs its cells, passes calls on, and starts a new worker where one was lost.

A hang or a crash costs what hung or crashed alone: the next request forks a fresh worker and runs the notebook's
cells again, without the one that did not come back.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import torch

from ..compare import describe
from ..notebook import MAX_CHARACTERS, CodeCell
from ..report import CellReport
from ..sandbox.inside import protocol
from ..sandbox.inside.arguments import Arguments
from ..sandbox.inside.bench import Kind, Observation, Target
from ..sandbox.inside.faults import Missing, Place, Raised, StudentFault, Unusable
from ..sandbox.inside.packing import Value, Whole
from ..sandbox.limits import Limits
from ..sandbox.losses import Crashed, SandboxLost, TimedOut
from ..sandbox.server import WarmParent, Worker
from .allowance import Allowance
from .budget import Budget, OutOfBudget, Patience

MAX_NAME, MAX_NAMES = 100, 20
MAX_PRINTED = 10_100
"""Characters of a cell's output, with the note that there was more."""

_IN_HASTE = "It did not come back in the little time that was left: the rest of the notebook had used up the other."

T = TypeVar("T")


class _Fault(msgspec.Struct):
    kind: str
    name: str = ""
    type_name: str = ""
    message: str = ""
    sentence: str = ""
    place: tuple[str, Whole] | None = None
    kinds: list[str] = []

    def raised(self, limits: Limits) -> StudentFault:
        if self.kind == "missing":
            return Missing(self.name[:MAX_NAME])
        if self.kind == "raised":
            kinds = self.kinds[:MAX_NAMES]
            return Raised(self.type_name, self.message, self._place(), kinds, limits.hint(kinds, self.message))
        return Unusable(self.sentence)

    def _place(self) -> Place | None:
        return Place(self.place[0][:MAX_NAME], self.place[1]) if self.place else None


class _Answer(msgspec.Struct):
    """Every field that any answer has; what is not there stays at its default, and what else is there is not read."""

    number: Whole = 0
    fault: _Fault | None = None
    printed: str = ""
    kind: Kind = "function"
    instance: Whole = -1
    verdict: str = ""
    value: Value = None
    changed: list[Whole] = []
    devices: list[str] = []
    gradients: Value = None
    parameter_gradients: Value = None
    library_calls: list[str] = []
    parameters: Value = None


class SandboxedNotebook:
    """One submission's code as a backend for `Student`. Close it when the submission is marked."""

    def __init__(self, parent: WarmParent, cells: Sequence[CodeCell], device: str, *, exercises: Sequence[str]) -> None:
        """exercises: the names of those that will be examined."""
        self._parent = parent
        self._cells = cells
        self._device = device
        self._limits = parent.limits
        self._worker: Worker | None = None
        self._budget = Budget(self._limits, exercises)
        self._allowance = Allowance()
        self._outcomes: dict[int, CellReport] = {}
        self._took: dict[int, float] = {}

    def run_cells(self) -> list[CellReport]:
        """Runs the notebook from top to bottom; what each cell did."""
        try:
            while self._worker is None:
                self._restart()
        except OutOfBudget:
            pass
        for number, cell in enumerate(self._cells):
            lost = CellReport(
                cell.name, "timeout", "Not run: what came before it used up the time that a notebook has.", ""
            )
            self._outcomes.setdefault(number, lost)
        return [self._outcomes[number] for number in range(len(self._cells))]

    def begin_exercise(self) -> None:
        """What is asked from here on is about the next exercise, and has the whole of what one may cost."""
        self._budget.begin_exercise()
        self._allowance.renew()

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
        self._budget.restart()
        self._worker = self._parent.fork(self._device)
        for number, cell in enumerate(self._cells):
            patience = self._patience(self._limits.cell_cpu_seconds, with_cell=True)
            before = self._outcomes.get(number)
            if before and before.status in ("timeout", "crashed"):
                continue
            if not self._budget.is_worth(cell, self._took.get(number)):
                continue
            started = time.monotonic()
            self._outcomes[number] = self._run_cell(cell, patience)
            if self._worker is None:
                return
            self._took[number] = time.monotonic() - started

    def _patience(self, cpu_seconds: int, *, with_cell: bool = False) -> Patience:
        try:
            return self._budget.patience(cpu_seconds, with_cell=with_cell)
        except OutOfBudget:
            self.close()
            raise

    def _run_cell(self, cell: CodeCell, patience: Patience) -> CellReport:
        if len(cell.source) > MAX_CHARACTERS:
            message = f"The cell has {len(cell.source)} characters, more than {MAX_CHARACTERS}; it was not run."
            return CellReport(cell.name, "failed", message, "")
        header = {"operation": "cell", "cell": cell.name, "source": cell.source, "only_shows": cell.only_shows}
        try:
            answer, _ = self._request(header, {}, patience)
        except TimedOut as loss:
            seconds = self._limits.cell_cpu_seconds
            message = str(loss) or (
                f"It did not finish in {seconds} seconds of computing, or {seconds * self._limits.wall_factor} of "
                "waiting. Does a loop in it never end?"
            )
            return CellReport(cell.name, "timeout", message, "")
        except Crashed as loss:
            message = (
                f"{loss} It was ended there, so neither it nor anything after it in that run could be used."
                if str(loss)
                else "This cell ended Python itself, so it and nothing after it in that run could be used."
            )
            return CellReport(cell.name, "crashed", message, "")
        if answer.fault:
            return CellReport(cell.name, "failed", str(answer.fault.raised(self._limits)), answer.printed[:MAX_PRINTED])
        return CellReport(cell.name, "set_aside" if cell.only_shows else "ran", "", answer.printed[:MAX_PRINTED])

    def _ask(self, header: dict[str, Any], tensors: protocol.Tensors | None = None) -> tuple[_Answer, protocol.Tensors]:
        self._allowance.check()
        while self._worker is None:
            self._restart()
        answer, payload = self._request(header, tensors or {}, self._patience(self._limits.call_cpu_seconds))
        if answer.fault:
            raise answer.fault.raised(self._limits)
        return answer, payload

    def _request(
        self, header: dict[str, Any], tensors: protocol.Tensors, patience: Patience
    ) -> tuple[_Answer, protocol.Tensors]:
        worker = self._worker
        assert worker is not None
        try:
            answer, payload = worker.request(
                header,
                tensors,
                cpu_seconds=patience.cpu_seconds,
                wall_seconds=patience.wall_seconds,
                idle_seconds=patience.idle_seconds,
                form=_Answer,
            )
        except TimedOut as loss:
            self._worker = None
            raise (TimedOut(_IN_HASTE) if self._budget.in_haste and not str(loss) else loss) from None
        except (Crashed, SandboxLost):
            self._worker = None
            raise
        finally:
            self._budget.forgive(worker.queued)
        self._allowance.take(sum(tensor.nbytes for tensor in payload.values()))
        return answer, payload

    def _understood(self, read: Callable[[], T]) -> T:
        """Reads what came from the untrusted side; nonsense there is a crash, and ends the worker."""
        try:
            return read()
        except (protocol.ProtocolError, msgspec.ValidationError, TypeError, ValueError):
            self.close()
            raise Crashed("What came back from it could not be read.") from None


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
    if not isinstance(parameters, dict) or not all(isinstance(name, str) for name in parameters):
        raise protocol.ProtocolError("parameters are not in the protocol's form")
    for name, parameter in parameters.items():
        if not isinstance(parameter, torch.Tensor):
            said = f"{name[:MAX_NAME]}` is {describe(parameter)}"
            raise Unusable(f"Its parameter `{said}; a tensor of real numbers is expected.")
    return parameters

"""An answer of the untrusted side: read into typed fields, and held against what was asked before it is believed."""

from typing import Annotated, Any, TypeVar

import msgspec
import torch

from ..compare import describe
from ..compare.errors_meant import meant
from ..core.bench import Operation
from ..core.device_probe import Probed
from ..core.faults import Missing, Place, Raised, StudentFault, Unusable
from ..core.observation import Observation
from ..core.operations import Call, MeasureCost, NamedParameters, ProbeDevice, WatchRun
from ..core.packing import Opaque, Packed, ProtocolError, Tensors, unpack
from ..sandbox.limits import Limits
from . import counted, grading_machine, watched_run

MAX_NAME, MAX_NAMES = 100, 20

T = TypeVar("T")
Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Value = None | bool | Whole | float | str | Packed


class Fault(msgspec.Struct):
    """What the student's code did wrong."""

    kind: str
    name: str = ""
    type_name: str = ""
    message: str = ""
    sentence: str = ""
    place: tuple[str, Whole] | None = None
    kinds: list[str] = []

    def raised(self, limits: Limits) -> StudentFault:
        """The fault as it is raised on this side."""
        if self.kind == "missing":
            return Missing(self.name[:MAX_NAME])
        if self.kind == "raised":
            kinds = self.kinds[:MAX_NAMES]
            message = self.message[: Raised.MAX_MESSAGE]
            hint = limits.hint(kinds, self.message) or grading_machine.hint(kinds, message) or meant(message)
            return Raised(self.type_name, self.message, self._place(), kinds, hint)
        return Unusable(self.sentence)

    def _place(self) -> Place | None:
        return Place(self.place[0][:MAX_NAME], self.place[1]) if self.place else None


class Answer(msgspec.Struct):
    """The fields of all answers: an operation's result is `value`; a call has all fields of an `Observation`.

    Missing fields keep their default, and unknown fields are not read.
    """

    value: Value = None
    changed: list[Whole] = []
    devices: list[str] = []
    gradients: Value = None
    parameter_gradients: Value = None
    library_calls: list[str] = []
    cost: Value = None

    number: Whole = 0
    fault: Fault | None = None
    device_lost: bool = False
    """True if the GPU computes nothing more for this worker."""
    printed: str = ""
    has_changes: bool = False
    """True if a cell changed a name that an answer above it reaches."""
    changes: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """Names that an answer reaches and that changed after its check, each with the cell that changed it."""


def given(operation: Operation[T], answer: Answer, payload: Tensors, cpu_seconds: float = 0.0) -> T:
    """What the operation gives by this answer.

    cpu_seconds: what it took, as far as that was measured outside the worker.
    Raises ProtocolError and ValidationError where it is nothing that this operation can give.
    """
    found: Any
    match operation:
        case Call():
            found = _observation(operation, _unpacked(answer, payload))
            found.cpu_seconds = cpu_seconds
            if isinstance(operation, MeasureCost):
                counted.read(found.cost)
        case NamedParameters():
            found = as_parameters(unpack(answer.value, payload))
        case ProbeDevice():
            found = _probed(unpack(answer.value, payload))
        case WatchRun():
            watched_run.read(found := unpack(answer.value, payload))
        case _:
            found = msgspec.convert(answer.value, operation.form)
    read: T = found
    return read


def _unpacked(answer: Answer, payload: Tensors) -> Observation[Any]:
    return Observation(
        unpack(answer.value, payload),
        answer.changed,
        answer.devices,
        unpack(answer.gradients, payload),
        unpack(answer.parameter_gradients, payload),
        answer.library_calls,
        unpack(answer.cost, payload),
    )


def _observation(call: Call, seen: Observation[Any]) -> Observation[Any]:
    arity = call.arity
    well_formed = (
        isinstance(seen.gradients, list)
        and len(seen.gradients) == (0 if call.cotangents is None else arity)
        and isinstance(seen.parameter_gradients, dict)
        and all(
            gradient is None or isinstance(gradient, torch.Tensor | Opaque)
            for gradient in (*seen.gradients, *seen.parameter_gradients.values())
        )
        and all(0 <= position < arity for position in seen.changed)
        and len(set(seen.changed)) == len(seen.changed)
        and len(seen.devices) <= MAX_NAMES
        and len(seen.library_calls) <= MAX_NAMES
    )
    if not well_formed:
        raise ProtocolError("an observation is not in the protocol's form")
    return seen


def _probed(sent: Any) -> Probed:
    if not isinstance(sent, tuple) or len(sent) != 2 or not isinstance(sent[0], str):
        raise ProtocolError("what a device's probe found is not in the protocol's form")
    return sent


def as_parameters(parameters: Any) -> dict[str, torch.Tensor]:
    """A module's parameters, as they came; raises Unusable where one is no tensor that could be sent."""
    if not isinstance(parameters, dict) or not all(isinstance(name, str) for name in parameters):
        raise ProtocolError("parameters are not in the protocol's form")
    for name, parameter in parameters.items():
        if not isinstance(parameter, torch.Tensor):
            said = f"{name[:MAX_NAME]}` is {describe(parameter)}"
            raise Unusable(f"Its parameter `{said}; a tensor of real numbers is expected.")
    return parameters

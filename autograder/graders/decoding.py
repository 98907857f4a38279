"""Decode a worker's answers, which are untrusted, into typed fields, and check that they fit the operation."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeVar, cast

import msgspec
import torch

from ..core.bench import Operation
from ..core.comparison import describe
from ..core.complaints import explain_error
from ..core.cost import Cost, Maximum
from ..core.device_probe import Probed
from ..core.edit_trials import TryEdits
from ..core.observation import Missing, Observation, Place, Raised, StudentFault, Unusable
from ..core.operations import Call, MeasureCost, NamedParameters, ProbeDevice, TraceRun
from ..core.packing import Opaque, Packed, ProtocolError, Tensors, unpack
from ..core.run_trace import MAX_ALL_NUMBERS, MAX_INPUTS, MAX_MADE, MAX_NUMBERS, MAX_RESULTS, Run, TracedTensor
from ..sandbox.limits import Limits

MAX_NAME, MAX_NAMES = 100, 20
_MAX_LINE, _MAX_DIMS = 100_000, 8
_MAX_MARKS = 5 + _MAX_DIMS + MAX_INPUTS
"""Most whole numbers that describe one tensor of a trace."""

T = TypeVar("T")
Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Value = None | bool | Whole | float | str | Packed
_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Most = tuple[_Count, str, str, _Count]
_COST = tuple[_Count, _Most, _Most, _Most, _Most]
_TRACE = tuple[str, str, torch.Tensor, torch.Tensor, list[torch.Tensor], bool, list[int]]

_NO_GPU = (
    "Grading runs without a GPU: use the device of the input, as in `torch.zeros(3, device=x.device)`, instead of a "
    "fixed one."
)
_NO_INPUT = "Nobody can type input during grading: write the value into the code instead of `input()`."
_NEEDS_GPU = re.compile(
    r"""Torch\ not\ compiled\ with\ (CUDA|XPU|HIP)
    | (is\ )?not\ linked\ with\ support\ for\ \w+\ devices
    | Found\ no\ NVIDIA\ driver | No\ (CUDA|HIP)\ GPUs\ are\ available | no\ CUDA-capable\ device
    | from\ the\ '(CUDA|MPS|XPU|XLA|HPU|HIP)'\ backend
    | Invalid\ device\ argument | Expected\ one\ of\ cpu,\ cuda
    | MPS\ (backend|device) | Cannot\ access\ accelerator\ device | torch\.(cuda|mps|xpu)\.\w+\ not\ available""",
    re.X,
)
_NEEDS_INPUT = re.compile(r"EOF when reading a line|input\(\): lost sys\.stdin")


class Fault(msgspec.Struct):
    """An error in the student's code, as a worker sends it."""

    kind: str
    name: str = ""
    type_name: str = ""
    message: str = ""
    sentence: str = ""
    place: tuple[str, Whole] | None = None
    kinds: list[str] = []
    has_own_words: bool = False

    def as_error(self, limits: Limits) -> StudentFault:
        """Return the error as an exception, with a hint if one of the submission's limits caused it."""
        if self.kind == "missing":
            return Missing(self.name[:MAX_NAME])
        if self.kind == "raised":
            kinds = self.kinds[:MAX_NAMES]
            message = self.message[: Raised.MAX_MESSAGE]
            hint = limits.hint(kinds, self.message) or grading_hint(kinds, message) or explain_error(message)
            place = Place(self.place[0][:MAX_NAME], self.place[1]) if self.place else None
            own = self.has_own_words
            return Raised(self.type_name, self.message, place, kinds, hint, has_own_words=own)
        return Unusable(self.sentence)


def grading_hint(kinds: Sequence[str], message: str) -> str:
    """Return an explanation of an error that occurs only in grading, which has no GPU and no input; else empty.

    kinds: names of the exception's class and its base classes. message: the exception's message.
    """
    if not {"EOFError", "RuntimeError"}.isdisjoint(kinds) and _NEEDS_INPUT.search(message):
        return _NO_INPUT
    return _NO_GPU if _NEEDS_GPU.search(message) else ""


class Answer(msgspec.Struct):
    """A worker's answer to any request, with the fields of all kinds of answers.

    `value` is an operation's result. The answer to a call has all fields of an `Observation`. Missing fields have their
    default, and unknown fields are not read.
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
    """True if this worker can no longer compute on the GPU."""
    printed: str = ""
    has_changes: bool = False
    """True if any cell changed a name that an answer in an earlier cell uses."""
    changes: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """Names that an answer uses and that changed after its check cell, each with the cell that changed it."""


def decode(operation: Operation[T], answer: Answer, payload: Tensors, cpu_seconds: float = 0.0) -> T:
    """Decode a worker's answer to an operation, and return the operation's result.

    payload: the answer's tensors. cpu_seconds: the CPU time of the call, if it was measured outside the worker.
    Raises ProtocolError and ValidationError if the operation cannot have this result.
    """
    value: Any
    match operation:
        case Call():
            value = _decode_observation(operation, answer, payload)
            value.cpu_seconds = cpu_seconds
            if isinstance(operation, MeasureCost):
                decode_cost(value.cost)
        case NamedParameters():
            value = decode_parameters(unpack(answer.value, payload))
        case ProbeDevice():
            value = _decode_probe(unpack(answer.value, payload))
        case TryEdits(variants=variants, operations=operations):
            value = unpack(answer.value, payload)
            _require(isinstance(value, torch.Tensor) and value.shape == (len(variants), len(operations), 3))
            _require(value.dtype == torch.float64)
        case TraceRun():
            decode_trace(value := unpack(answer.value, payload))
        case _:
            value = msgspec.convert(answer.value, operation.form)
    return cast(T, value)


def _decode_observation(call: Call, answer: Answer, payload: Tensors) -> Observation[Any]:
    observation: Observation[Any] = Observation(
        unpack(answer.value, payload),
        answer.changed,
        answer.devices,
        unpack(answer.gradients, payload),
        unpack(answer.parameter_gradients, payload),
        answer.library_calls,
        unpack(answer.cost, payload),
    )
    gradients, of_parameters = observation.gradients, observation.parameter_gradients
    is_well_formed = (
        isinstance(gradients, list)
        and len(gradients) == (0 if call.cotangents is None else call.arity)
        and isinstance(of_parameters, dict)
        and all(
            gradient is None or isinstance(gradient, torch.Tensor | Opaque)
            for gradient in (*gradients, *of_parameters.values())
        )
        and all(0 <= position < call.arity for position in answer.changed)
        and len(set(answer.changed)) == len(answer.changed)
        and len(answer.devices) <= MAX_NAMES
        and len(answer.library_calls) <= MAX_NAMES
    )
    if not is_well_formed:
        raise ProtocolError("an observation is not in the protocol's form")
    return observation


def _decode_probe(sent: Any) -> Probed:
    if not isinstance(sent, tuple) or len(sent) != 2 or not isinstance(sent[0], str):
        raise ProtocolError("the result of a device probe is not in the protocol's form")
    return sent


def decode_parameters(parameters: Any) -> dict[str, torch.Tensor]:
    """Check a module's parameters by name, and return them; raises Unusable if one is not a tensor of numbers."""
    if not isinstance(parameters, dict) or not all(isinstance(name, str) for name in parameters):
        raise ProtocolError("parameters are not in the protocol's form")
    for name, parameter in parameters.items():
        if not isinstance(parameter, torch.Tensor):
            actual = f"`{name[:MAX_NAME]}` is {describe(parameter)}"
            raise Unusable(f"Its parameter {actual}; a tensor of real numbers is expected.")
    return parameters


def decode_cost(sent: Any) -> Cost:
    """Decode the cost of a call; raises ProtocolError."""
    operations, *most = _convert(sent, _COST)
    return Cost(operations, *(Maximum(count, of[:MAX_NAME], file[:MAX_NAME], line) for count, of, file, line in most))


class Failed(Exception):
    """The error of a traced run that failed in the worker; it contains no details."""


def decode_trace(sent: Any) -> Run:
    """Decode the trace of a run; raises ProtocolError if its parts contradict each other."""
    _require(isinstance(sent, tuple))
    files, operators, marks, numbers, results, has_failed, returned = _convert(sent, _TRACE)
    _require(marks.dtype == torch.int64 and marks.dim() == 1 and marks.numel() <= MAX_MADE * _MAX_MARKS)
    _require(numbers.dtype == torch.float32 and numbers.dim() == 1 and numbers.numel() <= MAX_ALL_NUMBERS)
    _require(len(results) <= MAX_RESULTS)
    _require(all(result.numel() <= MAX_NUMBERS and not result.is_complex() for result in results))
    file_names = [name[:MAX_NAME] for name in files.split("\n", MAX_MADE)[:MAX_MADE]]
    names = [name[:MAX_NAME] for name in operators.split("\n", MAX_MADE)[:MAX_MADE]] if operators else []
    run = Run(_decode_tensors(file_names, names, iter(marks.tolist()), numbers.double()), results)
    run.error = Failed() if has_failed else None
    if returned:
        _require(len(returned) == 2 and 0 <= returned[0] < len(file_names) and 1 <= returned[1] <= _MAX_LINE)
        run.returned = file_names[returned[0]], returned[1]
    return run


def _decode_tensors(
    files: list[str], operators: list[str], marks: Iterator[int], numbers: torch.Tensor
) -> list[TracedTensor]:
    """Decode the tensors of a traced run; raises ProtocolError.

    marks: for each tensor, its file, line, place, shape and inputs; a length precedes shape and inputs. numbers: the
    elements of all tensors.
    """

    def take(most: int, least: int = 0) -> int:
        number = next(marks, -1)
        _require(least <= number <= most)
        return number

    begin = 0
    tensors: list[TracedTensor] = []
    for operator in operators:
        file = take(len(files) - 1)
        line, place = take(_MAX_LINE, least=1), take(1 << 30)
        shape = [take(MAX_NUMBERS) for _ in range(take(_MAX_DIMS))]
        inputs = tuple(take(len(tensors) - 1) for _ in range(take(MAX_INPUTS)))
        size = math.prod(shape)  # never wraps, unlike torch.Size.numel
        _require(size <= MAX_NUMBERS and begin + size <= numbers.numel())
        values = numbers[begin : begin + size].reshape(shape)
        begin += size
        tensors.append(TracedTensor(files[file], line, operator, values, inputs, place))
    _require(begin == numbers.numel() and next(marks, None) is None)
    return tensors


def _convert(sent: Any, form: Any) -> Any:
    try:
        return msgspec.convert(sent, form)
    except msgspec.ValidationError as error:
        raise ProtocolError("a value is not in the protocol's form") from error


def _require(holds: bool) -> None:
    if not holds:
        raise ProtocolError("a trace is not in the protocol's form")

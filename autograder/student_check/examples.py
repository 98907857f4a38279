"""The released examples: their steps, executed on the notebook's code as in grading, and the values in them.

A value is written as JSON: its elements, or the rule that generates them. A step is an operation as JSON: its name, its
fields, and what the check compares with the result. A step of a bug hunt also has the wrong function, and its result is
judged as an input of that function.
"""

import base64
import contextlib
import io
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist
from typing import Any

import torch

from ..core.arguments import Arguments, map_nested
from ..core.bench import Bench, Operation
from ..core.comparison import only
from ..core.constructed_answers import CounterexampleResult, CounterexampleTarget, judge_input, unpacked_function
from ..core.observation import Observation, Raised
from ..core.operations import (
    Assemble,
    Build,
    LoadParameters,
    ManualSeed,
    MeasureCost,
    NamedParameters,
    ProbeDevice,
    Read,
    ToDtype,
    Train,
    is_bias,
)
from ..core.operations import Call as CallOperation

DRAWN_DIGITS = 3
USUAL = "float32"
"""The dtype of values without a `dtype` field."""


def draw_values(rule: Sequence[float], shape: Sequence[int]) -> torch.Tensor:
    """Return float64 values that are equal on every machine.

    rule: [seed, mean, standard deviation] for a normal distribution, [seed] for numbers between 0.1 and 1.1.
    """
    return _drawn(tuple(rule), tuple(shape)).clone()


@cache
def _drawn(rule: tuple[float, ...], shape: tuple[int, ...]) -> torch.Tensor:
    seed, *bell = rule
    numbers, count = random.Random(int(seed)), torch.Size(shape).numel()
    if bell:
        normal = NormalDist(*bell)
        made = [normal.inv_cdf(numbers.random() or 0.5) for _ in range(count)]
    else:
        made = [0.1 + numbers.random() for _ in range(count)]
    rounded = [round(number, DRAWN_DIGITS) for number in made]
    return torch.tensor(rounded, dtype=torch.float64).reshape(shape)


def identity(size: int, shape: Sequence[int]) -> torch.Tensor:
    """Return identity matrices of this size that fill the shape's last two dimensions."""
    *_, rows, columns = shape
    distance = torch.arange(rows)[:, None] - torch.arange(columns)[None, :]
    return (distance % size == 0).double().expand(*shape)


_decoded = cache(base64.b85decode)
"""Cached, because decoding takes most of the time of reading a value again."""
_PACKED = {"float32": "f", "float64": "d"}


def pack_numbers(numbers: Sequence[float], dtype: str = "float32") -> str:
    """Return numbers as text, less than half as long as their digits."""
    return base64.b85encode(struct.pack(f"<{len(numbers)}{_PACKED[dtype]}", *numbers)).decode()


def unpack_numbers(text: str, dtype: str = "float32") -> list[float]:
    """Return the numbers of a packed text."""
    held = _decoded(text)
    code = _PACKED[dtype]
    return list(struct.unpack(f"<{len(held) // struct.calcsize(code)}{code}", held))


def are_thousandths(numbers: Sequence[float]) -> bool:
    """Return whether all numbers are multiples of 0.001 that fit into 16 bits, like generated values."""
    return all(abs(number) < 2**15 / 1000 and round(number, DRAWN_DIGITS) == number for number in numbers)


def pack_thousandths(numbers: Sequence[float]) -> str:
    """Return multiples of 0.001 as text, half as long as `pack_numbers` does."""
    return base64.b85encode(struct.pack(f"<{len(numbers)}h", *(round(number * 1000) for number in numbers))).decode()


def shorten_steps(steps: Sequence[Any]) -> list[Any]:
    """Return the steps without the usual dtype, and with an earlier step's number instead of an equal later one."""
    first = [steps.index(step) for step in steps]
    return [_without_usual_dtype(step) if at == first[at] else {"again": first[at]} for at, step in enumerate(steps)]


def _without_usual_dtype(plain: Any) -> Any:
    if isinstance(plain, list | tuple):
        return [_without_usual_dtype(one) for one in plain]
    if not isinstance(plain, dict):
        return plain
    left_out = "shape" in plain and plain.get("dtype") == USUAL
    return {name: _without_usual_dtype(one) for name, one in plain.items() if not (left_out and name == "dtype")}


def expand_steps(steps: Sequence[Any]) -> list[Any]:
    """Return steps with each number of an earlier step replaced by that step."""
    return [steps[step["again"]] if "again" in step else step for step in steps]


def inspected_result(step: Mapping[str, Any]) -> Any:
    """Return the right result of a step, with None for those of several results that the test does not inspect."""
    right = decode_value(step["result"])
    return only(right, *step["only"]) if "only" in step else right


def decode_value(plain: Any) -> Any:
    """Return the value of a released example's JSON."""
    if not isinstance(plain, dict):
        return plain
    if "tuple" in plain:
        return tuple(decode_value(item) for item in plain["tuple"])
    if "plain" in plain:
        return plain["plain"]
    shape, kind = plain["shape"], plain.get("dtype", USUAL)
    dtype = getattr(torch, kind)
    if "repeated" in plain:
        made = decode_value(plain["repeated"]).to(dtype).expand(shape)
    elif "drawn" in plain:
        made = draw_values(plain["drawn"], shape).to(dtype)
    elif "identity" in plain:
        made = identity(plain["identity"], shape).to(dtype)
    elif "thousandths" in plain:
        held = _decoded(plain["thousandths"])
        counts = struct.unpack(f"<{len(held) // 2}h", held)
        made = torch.tensor([count / 1000 for count in counts], dtype=dtype).reshape(shape)
    elif "packed" in plain:
        made = torch.tensor(unpack_numbers(plain["packed"], kind), dtype=dtype).reshape(shape)
    else:
        values = [float(value) if isinstance(value, str) else value for value in plain["values"]]  # "-inf" is a string
        made = torch.tensor(values, dtype=dtype).reshape(shape)
    return made.to(getattr(torch, plain["then"])) if "then" in plain else made.clone()


Step = Mapping[str, Any]


def operation_of(step: Step, value_of: Callable[[Any], Any]) -> Operation[Any]:
    """Return a step's JSON as an operation. value_of: decodes a value from its JSON."""
    values = tuple(value_of(arg) for arg in step.get("args", ()))
    arguments = Arguments(values, step.get("named", {}))
    match step["operation"]:
        case "manual_seed":
            return ManualSeed(step["seed"])
        case "build":
            return Build(step["name"], arguments, "plain" in step)
        case "assemble":
            fields = ("parameters", "buffers", "frozen", "shared", "computes", "others")
            return Assemble(**{name: step[name] for name in fields if name in step})
        case "load":
            parameters = {name: value_of(value) for name, value in step["values"].items()}
            return LoadParameters(step["instance"], parameters, "exactly" in step)
        case "to":
            return ToDtype(step["instance"], step["dtype"])
        case "train":
            return Train(step["instance"], step["mode"])
        case "parameters":
            return NamedParameters(step["instance"])
    target = step["name"] if "name" in step else step["instance"]
    held = tuple((position, number) for position, number in step.get("with", ()))
    match step["operation"]:
        case "probe":
            return ProbeDevice(target, arguments)
        case "cost":
            return MeasureCost(target, arguments, held=held, once="once" in step, limits=step["limits"])
        case "read":
            return Read(target, arguments, part=step["part"])
    cotangents = tuple(map(value_of, step["cotangents"])) if "cotangents" in step else None
    return CallOperation(target, arguments, cotangents, held, step.get("part", ""), "once" in step)


@dataclass
class Call:
    """A call that a step makes, and its observation."""

    step: Step
    operation: CallOperation | ProbeDevice
    function: Callable[..., Any]
    held: list[tuple[int, Any]] = field(default_factory=list)
    """The instances among its arguments, with their positions."""
    seen: Any = None
    """The call's `Observation`; the result of a device probe."""
    whole: Any = None
    """The result of the same call without dropout, if the step needs it."""

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments, without instances of the student's classes."""
        return self.operation.arguments.positional

    @property
    def named(self) -> Mapping[str, Any]:
        """The named arguments."""
        return self.operation.arguments.named

    @property
    def value(self) -> Any:
        """The call's result. None if it raised an exception, or only tested which device the code uses."""
        return self.seen.value if isinstance(self.seen, Observation) else None


class StepRunner:
    """Executes the steps of one example. `printed` has the output of the code's last call."""

    def __init__(self, names: Mapping[str, Any], dtype: torch.dtype | None = None) -> None:
        """names: the notebook's. dtype: the dtype to which floats of arguments and instances are converted."""
        self._names = names
        self._dtype = dtype
        self._bench = Bench(names)
        self.printed = io.StringIO()
        self.last_call: Call | None = None
        """The last call, which may not have returned."""

    def begin_again(self) -> None:
        """Drop all instances."""
        self._bench, self.last_call = Bench(self._names), None

    def lacks_biases(self, step: Step) -> bool:
        """Return whether a step would load a bias that the instance does not have."""
        if step.get("exactly"):
            return False
        own = dict(self._bench.instances[step["instance"]].named_parameters())
        return any(is_bias(name) and name not in own for name in step["values"])

    def run(self, step: Step) -> Any:
        """Execute a step. Return a `Call`, or the result of an operation that is not a call.

        Raises what the student's code raises, and StudentFault.
        """
        operation = operation_of(step, self._decode)
        if not isinstance(operation, CallOperation | ProbeDevice):
            result = self._ask(operation)
            if self._dtype and isinstance(operation, Build | Assemble) and not getattr(operation, "plain", False):
                self._bench.instances[-1].to(self._dtype)
            return result
        call = Call(step, operation, self._bench.target(operation.target))
        self.last_call = call
        if isinstance(operation, CallOperation):
            call.held = [(position, self._bench.instances[number]) for position, number in operation.held]
        if "whole" in step:
            call.whole = self._without_dropout(call)
        call.seen = self._ask(operation)
        return call

    def _decode(self, plain: Any) -> Any:
        def converted(value: Any) -> Any:
            is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
            return value.to(self._dtype) if is_float else value

        return map_nested(decode_value(plain), converted) if self._dtype else decode_value(plain)

    def _without_dropout(self, call: Call) -> Any:
        if call.step["whole"] == "argument":
            return call.args[0]
        instance = call.step["instance"]
        mode = bool(self._bench.instances[instance].training)
        self._ask(Train(instance, False))
        try:
            return self._ask(CallOperation(instance, call.operation.arguments)).value
        finally:
            self._ask(Train(instance, mode))

    def _ask(self, operation: Operation[Any]) -> Any:
        self.printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(self.printed):
                return self._bench.ask(operation)
        except Raised as fault:
            # The original exception has the traceback of the notebook's own lines, which the check shows.
            raise fault.__context__ or fault from None


COMES_FIRST = "your own function is what the wrong one is compared with."


def hunts(exercise: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the released bug hunts of an exercise: its steps' `hunt` fields; empty if it is no bug hunt."""
    steps = [step for example in exercise["examples"] for step in example["steps"]]
    return [step["hunt"] for step in steps if "hunt" in step]


def judge_hunt_input(given: Any, hunt: Mapping[str, Any], names: Mapping[str, Any]) -> CounterexampleResult:
    """Return the verdict on an input of a bug hunt, with the student's own function as the right one."""
    target = CounterexampleTarget(
        hunt["of"], tuple(hunt["takes"]), tuple(hunt.get("also", ())), tuple(hunt.get("hides", ()))
    )
    wrong, own = unpacked_function(target.of, hunt["wrong"]), names[target.of]
    with contextlib.redirect_stdout(io.StringIO()):
        return judge_input(given, target, wrong, own, _describe, f"Your `{target.of}`")


def _describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        if value.is_meta:
            return "a tensor on the meta device, which holds no numbers"
        layout = str(value.layout).removeprefix("torch.")
        return f"a tensor of shape {tuple(value.shape)}" if layout == "strided" else f"a tensor of layout {layout}"
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"

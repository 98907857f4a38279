"""The steps of an example, executed on the notebook's code by the same operations as in grading.

A step is an operation as JSON: its name, its fields, and what the check compares with the result. A step of a bug hunt
also has the wrong function, and its result is judged as an input of that function.
"""

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..core.arguments import Arguments, map_nested
from ..core.bench import Bench, Operation
from ..core.counterexample import CounterexampleResult, CounterexampleTarget, judge_input, unpacked_function
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
from .written_values import decode_value

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
        """The positional arguments, without instances."""
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

"""Encode the operations of a hidden test as the steps of a released example, with inputs drawn for the release.

A test that is not public is run on other inputs than its own, so that its cases stay hidden. The release contains the
rules (seed, mean and deviation) by which these inputs are drawn, not their elements.
"""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from .. import UserError
from ..core.arguments import Arguments
from ..core.bench import Bench, Operation, Target
from ..core.operations import (
    Assemble,
    Build,
    Call,
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
from ..graders.proxy import Cases, Reference
from ..student_check.examples import are_thousandths, draw_values, identity, pack_numbers, pack_thousandths
from .infer_aspects import ATTRIBUTES, BIASES, ONLY, tolerance_of

T = TypeVar("T")
Rule = list[float]
_DECIMALS, _EXACT_DECIMALS = 6, 12
INSTEAD = "instead"
"""Name of the module in the hidden tests' folder with substitutes for tests that cannot be released."""
_LONG = 24
"""Most elements of a tensor that the release contains in readable form."""


class NotReleasable(UserError):
    """Raised if a hidden test needs something that the student check cannot do; `str()` says what."""


class SeededInputs:
    """Draws the inputs of one example, and stores the rule by which each was drawn."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._drawn: list[tuple[Rule, torch.Tensor]] = []

    def draw(self, shape: tuple[int, ...], *mean_and_deviation: float) -> torch.Tensor:
        """Draw the next tensor, in float64, from a normal distribution with this mean and standard deviation.

        Without them, draw evenly between 0.1 and 1.1.
        """
        seed = zlib.crc32(f"{self._name}, released, {len(self._drawn)}".encode())
        rule: Rule = [seed, *mean_and_deviation]
        tensor = draw_values(rule, shape)
        self._drawn.append((rule, tensor))
        return tensor

    def rule_of(self, tensor: torch.Tensor) -> tuple[Rule, torch.dtype] | None:
        """Return the rule by which a tensor was drawn, and the dtype to which it was converted; None if not drawn."""
        for rule, original in self._drawn:
            if original.shape != tensor.shape or original.numel() < 2:
                continue
            for dtype in (tensor.dtype, torch.float32):
                if torch.equal(original.to(dtype).to(tensor.dtype), tensor):
                    return rule, dtype
        return None


class SeededCases(Cases):
    """Random cases for a hidden test, drawn by rules that are released."""

    def __init__(self, inputs: SeededInputs) -> None:
        self._inputs = inputs
        self._dtype = torch.float32

    def _even(self, shape: tuple[int, ...]) -> torch.Tensor:
        return self._inputs.draw(shape)

    def _bell(self, shape: tuple[int, ...], scale: float) -> torch.Tensor:
        return self._inputs.draw(shape, 0.0, scale)


class SeededReference(Reference):
    """The solutions as reference; their instances' parameters are drawn by rules that are released."""

    def __init__(self, solutions: Mapping[str, Any], inputs: SeededInputs) -> None:
        super().__init__(solutions)
        backend: Any = self._backend
        backend._backend = _SeededBench(solutions, inputs)  # below the backend that computes in float64


class _SeededBench(Bench):
    def __init__(self, solutions: Mapping[str, Any], inputs: SeededInputs) -> None:
        super().__init__(solutions)
        self._inputs = inputs

    def ask(self, operation: Operation[T]) -> T:
        result = super().ask(operation)
        if isinstance(operation, Assemble) or (isinstance(operation, Build) and not operation.plain):
            for parameter in self.instances[-1].parameters():
                initial = parameter.data
                deviation = float(initial.std()) if initial.numel() > 1 else 0.5
                mean = float(initial.mean()) if initial.numel() > 20 else 0.0
                drawn_values = self._inputs.draw(tuple(initial.shape), round(mean, 2), max(round(deviation, 2), 0.1))
                initial.copy_(drawn_values)
        return result


@dataclass
class Answered:
    """An operation of a hidden test, and the solution's result."""

    operation: Operation[Any]
    result: Any = None
    dtype: str = ""
    """The dtype of a call's result."""
    has_raised: bool = False


@dataclass
class StepWriter:
    """Encodes operations as the steps of an example, which `student_check.examples` executes."""

    inputs: SeededInputs
    aspects: dict[str, Any]
    """The aspects that the test inspects: see `infer_aspects`."""
    errors: list[str]
    """Names of the exception types with which a call may reject its arguments."""

    def steps(self, answered: Sequence[Answered]) -> list[dict[str, Any]]:
        """Return a test's operations, with their results, as steps. Raises NotReleasable."""
        return [{**self._step(one), "refuses": self.errors} if one.has_raised else self._step(one) for one in answered]

    def _step(self, answered: Answered) -> dict[str, Any]:
        match answered.operation:
            case ManualSeed(seed):
                return {"operation": "manual_seed", "seed": seed}
            case Build(name, arguments, plain):
                step = {"operation": "build", "name": name, **self._arguments(arguments)}
                return {**step, "plain": True} if plain else step
            case Assemble(parameters, buffers, frozen, shared, computes, others):
                optional: dict[str, Any] = {"buffers": _lists(buffers), "frozen": list(frozen)}
                optional |= {"shared": dict(shared), "computes": computes, "others": list(others)}
                written = {part: value for part, value in optional.items() if value}
                return {"operation": "assemble", "parameters": _lists(parameters), **written}
            case MeasureCost(limits=limits):
                return {**self._call(answered.operation, answered), "operation": "cost", "limits": dict(limits)}
            case Call():
                return self._call(answered.operation, answered)
            case LoadParameters(instance, values, exactly):
                written = {name: self._value(value) for name, value in values.items()}
                step = {"operation": "load", "instance": instance, "values": written}
                return {**step, "exactly": True} if exactly else step
            case ToDtype(instance, dtype):
                return {"operation": "to", "instance": instance, "dtype": dtype}
            case Train(instance, mode):
                return {"operation": "train", "instance": instance, "mode": mode}
            case NamedParameters(instance):
                shapes = {name: list(parameter.shape) for name, parameter in answered.result.items()}
                inspected = {"right": shapes} if "parameters" in self.aspects else {}
                return {"operation": "parameters", "instance": instance, **inspected}
            case ProbeDevice(target, arguments):
                return {"operation": "probe", **_target(target), **self._arguments(arguments)}
        raise NotReleasable(
            f"A grader asks for {type(answered.operation).__name__}, which the check cannot do: {INSTEAD}.py can hold "
            "another for it."
        )

    def _call(self, call: Call, answered: Answered) -> dict[str, Any]:
        step = {"operation": "call", **_target(call.target), **self._arguments(call.arguments)}
        if call.held:
            step["with"] = [list(one) for one in call.held]
        if call.part:
            step |= {"operation": "read" if isinstance(call, Read) else "call", "part": call.part}
        if call.once:
            step["once"] = True
        result = answered.result
        if result is None or ((call.held or call.part) and result.value is None):
            return step  # later steps inspect its effect on the instances
        if ATTRIBUTES in self.aspects and not isinstance(call, Read):
            return step
        close = self.aspects.get("value") or tolerance_of(call)
        decimals = _EXACT_DECIMALS if close < 1e-6 else _DECIMALS
        if "dtype" in self.aspects:
            step["dtype"] = answered.dtype
        if self.aspects.keys() & {"value", "steady"}:
            step |= {"result": self._value(result.value, decimals), "close": close}
            step |= {ONLY: self.aspects[ONLY]} if ONLY in self.aspects else {}
        if call.cotangents is not None and self.aspects.keys() & {"gradients", "arrival", "finite"}:
            step["cotangents"] = [self._value(one) for one in call.cotangents]
            if "gradients" in self.aspects:
                step["close"] = close
                only_biases = self.aspects["gradients"] == BIASES
                step["gradients"] = [None if only_biases else self._value(one, decimals) for one in result.gradients]
                step["parameter_gradients"] = {
                    name: self._value(one, decimals)
                    for name, one in result.parameter_gradients.items()
                    if is_bias(name) or not only_biases
                }
            elif "arrival" in self.aspects:
                step["arrives_at"] = [n for n, one in enumerate(result.gradients) if one is not None]
        return step

    def _arguments(self, arguments: Arguments) -> dict[str, Any]:
        positional = [self._value(value) for value in arguments.positional]
        return {"args": positional, "named": dict(arguments.named)} if arguments.named else {"args": positional}

    def _value(self, value: Any, decimals: int | None = None) -> Any:
        if isinstance(value, tuple | list):
            return {"tuple": [self._value(one, decimals) for one in value]}
        if decimals is None and isinstance(value, torch.Tensor) and (rule := self._rule(value)):
            return rule
        return as_json(value, decimals)

    def _rule(self, value: torch.Tensor) -> dict[str, Any] | None:
        about = {"shape": list(value.shape), "dtype": name_of(value.dtype)}
        if found := self.inputs.rule_of(value):
            rule, dtype = found
            then = {} if dtype == value.dtype else {"then": name_of(value.dtype)}
            return {"drawn": rule, **about, "dtype": name_of(dtype), **then}
        if value.dim() > 1 and value.numel() > 16:
            for size in (1, *value.shape[-2:]):
                if torch.equal(identity(size, value.shape).to(value.dtype), value):
                    return {"identity": size, **about}
        return None


def _lists(shapes: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {name: list(shape) for name, shape in shapes.items()}


def _target(target: Target) -> dict[str, Any]:
    return {"instance": target} if isinstance(target, int) else {"name": target}


def name_of(dtype: torch.dtype) -> str:
    """Return a dtype's name as the release contains it, such as `float32`."""
    return str(dtype).removeprefix("torch.")


def as_json(value: Any, decimals: int | None = None) -> Any:
    """Encode a value, such as a tensor, as JSON; `student_check.examples.decode_value` decodes it.

    decimals: round tensors' elements to this number of decimals; None to keep all digits.
    """
    if isinstance(value, tuple | list):
        return {"tuple": [as_json(item, decimals) for item in value]}
    if isinstance(value, dict):
        return {"plain": value}
    if not isinstance(value, torch.Tensor):
        return value
    flat = value.detach().flatten()
    if value.is_floating_point():
        # The shortest digits that read back as the same number, or the rounded ones.
        shortest = [float(str(number)) for number in (flat.float() if flat.dtype == torch.bfloat16 else flat).numpy()]
        digits = [round(number, decimals) for number in shortest] if decimals is not None else shortest
        if len(digits) > _LONG:
            dtype = "float32" if decimals == _DECIMALS or value.dtype == torch.float32 else "float64"
            short = (
                {"thousandths": pack_thousandths(digits)}
                if are_thousandths(digits)
                else {"packed": pack_numbers(digits, dtype)}
            )
            is_half = value.dtype.itemsize == 2 and decimals is None
            then = {"then": name_of(value.dtype)} if is_half else {}
            return {"shape": list(value.shape), "dtype": dtype, **short, **then}
    else:
        digits = flat.int().tolist() if flat.dtype == torch.bool else flat.tolist()
    # JSON has no infinity; it is written as a word.
    written = [number if math.isfinite(number) else str(number) for number in digits]
    return {"shape": list(value.shape), "dtype": name_of(value.dtype), "values": written}

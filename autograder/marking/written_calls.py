"""A grader's calls as they stand in the release: as data that can be read, and as short as they can be."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..core.arguments import Arguments, Held
from ..core.bench import Operation
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
from ..handout.written_values import are_short, identity, in_thousandths, packed
from .other_numbers import Rules
from .what_is_asked import BIASES, close_for

DECIMALS, EXACT_DECIMALS = 6, 12
INSTEAD = "instead"
"""The module of the hidden graders with what is released in the place of some of them."""
LONG = 24
"""So many numbers stand in the release in a form that can be read; longer ones in one that is short."""


class NotReleasable(Exception):
    """A grader asks what no check can; `str()` says which."""


@dataclass
class Asked:
    """What a grader asked, and what came of it."""

    operation: Operation[Any]
    given: Any = None
    dtype: str = ""
    """Of a call's result."""
    fault: bool = False


@dataclass
class Writing:
    """Writes down what was asked."""

    rules: Rules
    aspects: dict[str, Any]
    refused: list[str]

    def steps(self, asked: Asked) -> list[dict[str, Any]]:
        """One step, as `handout.tried` takes it. Raises NotReleasable."""
        step = self._step(asked)
        if step and asked.fault:
            step["refuses"] = self.refused
        return [step] if step else []

    def _step(self, asked: Asked) -> dict[str, Any] | None:
        match asked.operation:
            case ManualSeed(seed):
                return {"operation": "manual_seed", "seed": seed}
            case Build(name, arguments, plain):
                step = {"operation": "build", "name": name, **self._arguments(arguments)}
                return {**step, "plain": True} if plain else step
            case Assemble(parameters, buffers, frozen, shared, computes, others):
                more: dict[str, Any] = {"buffers": _lists(buffers), "frozen": list(frozen)}
                more |= {"shared": dict(shared), "computes": computes, "others": list(others)}
                written = {part: one for part, one in more.items() if one}
                return {"operation": "assemble", "parameters": _lists(parameters), **written}
            case MeasureCost(limits=limits):
                return {**self._call(asked.operation, asked), "operation": "cost", "limits": dict(limits)}
            case Call():
                return self._call(asked.operation, asked)
            case LoadParameters(instance, values, exactly):
                written = {name: self._plain(value) for name, value in values.items()}
                step = {"operation": "load", "instance": instance, "values": written}
                return {**step, "exactly": True} if exactly else step
            case ToDtype(instance, dtype):
                return {"operation": "to", "instance": instance, "dtype": dtype}
            case Train(instance, mode):
                return {"operation": "train", "instance": instance, "mode": mode}
            case NamedParameters(instance):
                right = {name: list(one.shape) for name, one in asked.given.items()}
                looked_at = {"right": right} if "parameters" in self.aspects else {}
                return {"operation": "parameters", "instance": instance, **looked_at}
            case ProbeDevice(target, arguments):
                return {"operation": "probe", **_target(target), **self._arguments(arguments)}
        what = type(asked.operation).__name__
        raise NotReleasable(
            f"A grader asks for {what}, which the check cannot do: {INSTEAD}.py can hold another for it."
        )

    def _call(self, call: Call, asked: Asked) -> dict[str, Any]:
        step = {"operation": "call", **_target(call.target), **self._arguments(call.arguments), **_with(call.held)}
        if call.part:
            step |= {"operation": "read" if isinstance(call, Read) else "call", "part": call.part}
        if call.once:
            step |= {"once": True}
        close = self.aspects.get("value") or close_for(call)
        decimals = EXACT_DECIMALS if close < 1e-6 else DECIMALS
        given = asked.given
        if given is None or ((call.held or call.part) and given.value is None):
            return step  # what it did to its instances shows in what they are asked next
        if "dtype" in self.aspects:
            step["dtype"] = asked.dtype
        if self.aspects.keys() & {"value", "steady"}:
            step |= {"result": self._plain(given.value, decimals), "close": close}
        if call.cotangents is not None and self.aspects.keys() & {"gradients", "arrival", "finite"}:
            step["cotangents"] = [self._plain(one) for one in call.cotangents]
            if "gradients" in self.aspects:
                step["close"] = close
                biases = self.aspects["gradients"] == BIASES
                step["gradients"] = [None if biases else self._plain(one, decimals) for one in given.gradients]
                named = [(name, one) for name, one in given.parameter_gradients.items() if is_bias(name) or not biases]
                step["parameter_gradients"] = {name: self._plain(one, decimals) for name, one in named}
            elif "arrival" in self.aspects:
                step["arrives_at"] = [n for n, one in enumerate(given.gradients) if one is not None]
        return step

    def _arguments(self, arguments: Arguments) -> dict[str, Any]:
        positional = [self._plain(value) for value in arguments.positional]
        return {"args": positional, "named": dict(arguments.named)} if arguments.named else {"args": positional}

    def _plain(self, value: Any, decimals: int | None = None) -> Any:
        if isinstance(value, tuple | list):
            return {"tuple": [self._plain(one, decimals) for one in value]}
        if decimals is None and isinstance(value, torch.Tensor) and (short := self._by_a_rule(value)):
            return short
        return as_json(value, decimals)

    def _by_a_rule(self, value: torch.Tensor) -> dict[str, Any] | None:
        about = {"shape": list(value.shape), "dtype": name_of(value.dtype)}
        if found := self.rules.of(value):
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


def _with(held: Held) -> dict[str, Any]:
    return {"with": [list(one) for one in held]} if held else {}


def _target(target: str | int) -> dict[str, Any]:
    return {"instance": target} if isinstance(target, int) else {"name": target}


def name_of(dtype: torch.dtype) -> str:
    """As it stands in the release."""
    return str(dtype).removeprefix("torch.")


def as_json(value: Any, decimals: int | None = None) -> Any:
    """As JSON; `written_values.as_value` reads it again."""
    if isinstance(value, tuple | list):
        return {"tuple": [as_json(item, decimals) for item in value]}
    if isinstance(value, dict):
        return {"plain": value}
    if not isinstance(value, torch.Tensor):
        return value
    flat = value.detach().flatten()
    if value.is_floating_point():
        # The shortest digits that give the same number again, or the rounded ones.
        shortest = [float(str(number)) for number in (flat.float() if flat.dtype == torch.bfloat16 else flat).numpy()]
        digits = [round(number, decimals) for number in shortest] if decimals is not None else shortest
        if len(digits) > LONG:
            dtype = "float32" if decimals == DECIMALS or value.dtype == torch.float32 else "float64"
            short = {"thousandths": in_thousandths(digits)} if are_short(digits) else {"packed": packed(digits, dtype)}
            return {"shape": list(value.shape), "dtype": dtype, **short}
    else:
        digits = flat.int().tolist() if flat.dtype == torch.bool else flat.tolist()
    # JSON has no infinity; as a word it survives.
    written = [number if math.isfinite(number) else str(number) for number in digits]
    return {"shape": list(value.shape), "dtype": name_of(value.dtype), "values": written}

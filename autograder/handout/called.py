"""A call in words: `scaled_softmax(scores of shape (1, 6), d_k=24)`."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..core.arguments import together
from .trial import Call
from .written_values import as_value

_LONGEST_ARGUMENT = 60
_MOST_PARTS = 6


def calls_with_results(steps: list[Any]) -> list[Any]:
    """Those of a function: a module would need its parameters, also where a function is called with it."""
    return [step for step in steps if "name" in step and "result" in step and not step.keys() & {"with", "once"}]


def to_play_with(call: Call, exercise: str, number: int, example: Mapping[str, Any]) -> str:
    """How to get at the call's arguments and the right result; nothing where that cannot be."""
    calls = calls_with_results(example["steps"])
    at = next((at for at, step in enumerate(calls, start=1) if step is call.step), 0)
    which = f", call={at}" if at > 1 else ""
    return f'args, right = example("{exercise}", {number}{which})' if at else ""


def in_words(call: Call, example: Mapping[str, Any]) -> str:
    """What was called, with what."""
    step = call.step
    if "name" in step:
        once = ", as an iterator, which can be walked once" if "once" in step else ""
        return f"{step['name']}({_arguments(call.function, together(call.args, call.held), call.named)}){once}"
    builds = [one for one in example["steps"] if one["operation"] in ("build", "assemble")]
    build = builds[step["instance"]]
    if "part" in step:
        ends = (
            ""
            if step["operation"] == "read"
            else f"({_arguments(call.function, together(call.args, call.held), call.named)})"
        )
        made = f"{build['name']}()" if "name" in build else "the module"
        return f"{made}.{step['part']}{ends}"
    if "others" in build:
        x = ", ".join(_argument("x", arg) for arg in call.args)
        return f"`{build['computes']}`, with {x}"
    if build["operation"] == "assemble":
        return f"{_argument('', call.function)}, called with {_arguments(None, call.args, call.named)}"
    made = _arguments(None, [as_value(arg) for arg in build.get("args", ())], build.get("named", {}))
    mode = "in training" if call.function.training else "after eval()"  # type: ignore[attr-defined]
    forward = getattr(call.function, "forward", None)
    return f"{build['name']}({made})({_arguments(forward, together(call.args, call.held), call.named)}), {mode}"


def _arguments(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> str:
    try:
        names = list(inspect.signature(function).parameters) if function is not None else []
    except (TypeError, ValueError):
        names = []
    words = [_argument(names[number] if number < len(names) else "", arg) for number, arg in enumerate(args)]
    return ", ".join([*words, *(_argument(name, arg) for name, arg in named.items())])


def _argument(name: str, arg: Any) -> str:
    if isinstance(arg, torch.Tensor):
        dtype = "" if arg.dtype == torch.float32 else f" and {arg.dtype}"
        return f"{name or 'a tensor'} of shape {tuple(arg.shape)}{dtype}"
    if isinstance(arg, torch.nn.Module):
        parts = [f"{part} {tuple(own.shape)}" for part, own in arg.named_parameters()]
        more = "" if len(parts) <= _MOST_PARTS else f" and {len(parts) - _MOST_PARTS} more"
        return f"{name or 'a module'} with {', '.join(parts[:_MOST_PARTS]) or 'no parameters'}{more}"
    if isinstance(arg, list | tuple):
        each = [_argument("", one) for one in arg]
        alike = len(each) > _MOST_PARTS and len(set(each)) == 1
        return f"{name} of {len(each)}: {f'each {each[0]}' if alike else ', '.join(each)}"
    said = repr(arg)
    said = said if len(said) <= _LONGEST_ARGUMENT else f"{said[:_LONGEST_ARGUMENT]}…"
    return f"{name}={said}" if name else said

"""A hunt in the check that students get: what they return is tried on the wrong function and on their own."""

import contextlib
import io
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..core.counterexample import HuntResult, HuntTarget, shown_by, unpacked_function
from .trial import Call

COMES_FIRST = "your own function is what the wrong one is compared with."


def hunts(of: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What an exercise hunts, as it is released; nothing of one that is no hunt."""
    steps = [step for one in of["examples"] for step in one["steps"]]
    return [step["hunt"] for step in steps if "hunt" in step]


def caught(call: Call, names: Mapping[str, Any]) -> HuntResult:
    """What the input that a call gave shows; the student's own function is in the place of the right one."""
    return looked_at(call.value, call.step["hunt"], names)


def looked_at(given: Any, hunt: Mapping[str, Any], names: Mapping[str, Any]) -> HuntResult:
    """The same of any input."""
    target = HuntTarget(hunt["of"], tuple(hunt["takes"]), tuple(hunt.get("also", ())), tuple(hunt.get("hides", ())))
    own: Callable[..., Any] = names[target.of]
    with contextlib.redirect_stdout(io.StringIO()):
        return shown_by(
            given, target, unpacked_function(target.of, hunt["wrong"]), own, _in_words, f"Your `{target.of}`"
        )


def _in_words(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        if value.is_meta:
            return "a tensor on the meta device, which holds no numbers"
        layout = str(value.layout).removeprefix("torch.")
        return f"a tensor of shape {tuple(value.shape)}" if layout == "strided" else f"a tensor of layout {layout}"
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"

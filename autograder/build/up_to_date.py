"""Whether a file that was built before says what is built now: processors round differently in the last digit."""

import filecmp
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..handout.names import EXAMPLES, MISTAKES
from ..handout.written_values import USUAL, unpacked


def is_up_to_date(built: Path, present: Path) -> bool:
    """Whether the existing file is the built one, but for how its numbers are rounded."""
    if filecmp.cmp(built, present, shallow=False):
        return True
    if built.name not in _CLOSE:
        return False
    try:
        return _alike(json.loads(built.read_text()), json.loads(present.read_text()), _CLOSE[built.name])
    except ValueError:
        return False


@dataclass(frozen=True)
class _Close:
    """How far apart two processors may get the same number; the check itself allows more."""

    to_its_size: float
    at_all: float

    def holds(self, one: float, other: float) -> bool:
        return one == other or math.isclose(one, other, rel_tol=self.to_its_size, abs_tol=self.at_all)


_EXACTLY = _Close(0.0, 0.0)
_CLOSE = {EXAMPLES: _EXACTLY, MISTAKES: _Close(1e-5, 2e-4)}
"""Of what is written in these files. Mistakes' sums have four digits after the point."""
_OF_TENSORS = {"float32": _Close(1e-6, 2e-6), "float64": _Close(1e-12, 2e-12)}
"""Of the tensors in them: short ones have six or twelve digits after the point."""


def _alike(one: Any, other: Any, close: _Close) -> bool:
    match one, other:
        case float(), float():
            return close.holds(one, other)
        case dict(), dict():
            if "shape" in one:
                close = _OF_TENSORS.get(one.get("dtype", USUAL), _EXACTLY)
                one, other = _with_numbers(one), _with_numbers(other)
            return one.keys() == other.keys() and all(_alike(one[key], other[key], close) for key in one)
        case list(), list():
            return len(one) == len(other) and all(_alike(*pair, close) for pair in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


def _with_numbers(tensor: dict[str, Any]) -> dict[str, Any]:
    if "packed" not in tensor:
        return tensor
    return {**tensor, "packed": unpacked(tensor["packed"], tensor.get("dtype", USUAL))}

"""Compare a built file with the present one, up to the rounding of numbers, which differs between processors."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..student_check import examples
from ..student_check.unit_data import EXAMPLES, LESSON, MISTAKES, STEPS, read_unit
from ..tracing.reference import TOLERANCE, unpack_numbers


def is_up_to_date(built: Path, present: Path) -> bool:
    """Return whether a built file differs from the present one only in the rounding of its numbers.

    Always False for files that are not data files of the student check.
    """
    if not built.name.endswith(".json.gz"):
        return False
    try:
        one, other = read_unit(built), read_unit(present)
    except ValueError:
        return False
    return one.keys() == other.keys() and all(_alike(one[key], other[key], _CLOSE.get(key, _EXACTLY)) for key in one)


@dataclass(frozen=True)
class _Close:
    """Tolerance, relative and absolute, for the same number from two processors; the student check allows more."""

    to_its_size: float
    at_all: float

    def holds(self, one: float, other: float) -> bool:
        close = math.isclose(one, other, rel_tol=self.to_its_size, abs_tol=self.at_all)
        return close or one == other or (math.isnan(one) and math.isnan(other))


_EXACTLY = _Close(0.0, 0.0)
_CLOSE = {EXAMPLES: _EXACTLY, LESSON: _EXACTLY, MISTAKES: _Close(1e-5, 2e-4), STEPS: _Close(TOLERANCE, TOLERANCE)}
"""Tolerance for each section of a data file. The sums of misconceptions are rounded to four decimals."""
_OF_TENSORS = {"float32": _Close(1e-6, 2e-6), "float64": _Close(1e-12, 2e-12)}
"""Tolerance for tensors in these sections, by dtype. They may be rounded to six or twelve decimals."""


def _alike(one: Any, other: Any, close: _Close) -> bool:
    match one, other:
        case float(), float():
            return close.holds(one, other)
        case dict(), dict():
            is_step = close is _CLOSE[STEPS] and "dtype" not in one
            if "shape" in one and not is_step:
                close = _OF_TENSORS.get(one.get("dtype", examples.USUAL), _EXACTLY)
            if isinstance(one.get("packed"), str) and isinstance(other.get("packed"), str):  # not a prediction's name
                one, other = _with_numbers(one, is_step=is_step), _with_numbers(other, is_step=is_step)
            return one.keys() == other.keys() and all(_alike(one[key], other[key], close) for key in one)
        case list(), list():
            return len(one) == len(other) and all(_alike(*pair, close) for pair in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


def _with_numbers(tensor: dict[str, Any], *, is_step: bool) -> dict[str, Any]:
    if is_step:
        return {**tensor, "packed": unpack_numbers(tensor).tolist()}
    dtype = tensor.get("dtype", examples.USUAL)
    return {**tensor, "packed": examples.unpack_numbers(tensor["packed"], dtype)}

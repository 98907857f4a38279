"""Holds values against the expected ones: the graders, the fingerprints and the check that students get all do it here.

Needs nothing but what the check imports, of which it becomes a part.
"""

from collections.abc import Callable
from typing import Any

import torch


class Expected:
    """A reference value, and how close to it a right answer comes."""

    def __init__(self, value: Any, tolerance: float) -> None:
        self.value = value
        self.tolerance = tolerance

    def __getitem__(self, index: Any) -> "Expected":
        return Expected(self.value[index], self.tolerance)


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def expecting(value: Any, tolerance: float) -> Any:
    """The value with every tensor in it as one that is expected."""
    if isinstance(value, tuple | list):
        items = [expecting(item, tolerance) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {key: expecting(item, tolerance) for key, item in value.items()}
    return Expected(value.detach(), tolerance) if isinstance(value, torch.Tensor) else value


def close(one: torch.Tensor, other: torch.Tensor, tolerance: float) -> torch.Tensor:
    """Where two tensors of one shape have the same numbers, or the same infinity, or none."""
    return torch.isclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


def difference(
    actual: Any,
    expected: Any,
    named: Callable[[Any], str],
    told: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], str],
    *,
    tolerance: float | None = None,
    what: str = "The result",
) -> str | None:
    """How a value differs from what is expected, one tensor or a tuple of them; None where it does not.

    named: what a value is. told: how two tensors differ, given where they are close. tolerance: in the place of the
    expected values' own.
    """
    if isinstance(expected, tuple):
        if not isinstance(actual, tuple | list) or len(actual) != len(expected):
            return f"{what} is {named(actual)}; {len(expected)} tensors are expected."
        each = (
            difference(one, other, named, told, tolerance=tolerance, what=f"The {nth} result")
            for nth, one, other in zip(ORDINALS, actual, expected, strict=False)
        )
        return next(filter(None, each), None)
    shape = tuple(expected.value.shape)
    if not isinstance(actual, torch.Tensor):
        return f"{what} is {named(actual)}; a tensor of shape {shape} is expected."
    if actual.shape != shape:
        return f"{what} has shape {tuple(actual.shape)}; {shape} is expected."
    if actual.is_complex():
        return f"{what} is complex; real numbers are expected."
    tolerance = expected.tolerance if tolerance is None else tolerance
    actual, right = actual.detach().to("cpu", torch.float64), expected.value.double()
    if bool(((actual - right).abs() < tolerance * (1 + right.abs())).all()):
        return None  # as mostly; what follows takes ten times as long, and knows infinity and NaN
    alike = close(actual, right, tolerance)
    return None if bool(alike.all()) else f"{what} {told(actual, right, alike)}"


def oddly_shaped(actual: Any, expected: Any, tolerance: float | None = None) -> bool:
    """Whether the numbers are right, and stand in a shape with a dimension of size 1 too many or too few."""
    if isinstance(expected, tuple):
        several = isinstance(actual, tuple | list) and len(actual) == len(expected)
        return several and all(
            _same(one, other, tolerance) or oddly_shaped(one, other, tolerance)
            for one, other in zip(actual, expected, strict=True)
        )
    if not isinstance(actual, torch.Tensor) or actual.shape == expected.value.shape:
        return False
    return _same(actual.squeeze(), Expected(expected.value.squeeze(), expected.tolerance), tolerance)


def _same(actual: Any, expected: Any, tolerance: float | None) -> bool:
    return difference(actual, expected, str, lambda *_: "differs", tolerance=tolerance) is None

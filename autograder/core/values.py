"""Holds values against the expected ones: the graders, the fingerprints and the check that students get all do it here.

Needs nothing but what the check imports, of which it becomes a part.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .arguments import tensors_in


class Expected:
    """A reference value, and how close to it a right answer comes."""

    def __init__(self, value: Any, tolerance: float) -> None:
        self.value = value
        self.tolerance = tolerance

    def __getitem__(self, index: Any) -> "Expected":
        return Expected(self.value[index], self.tolerance)


RIGHT_NUMBERS = "Its numbers are right."
_MOST_RESULTS = 3
"""A longer list could hold every plausible result."""
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


def right_in_another_form(actual: Any, expected: Any, tolerance: float | None = None) -> str:
    """Return what is right about a wrong result that one trivial conversion makes right; otherwise an empty string.

    The conversions: add or drop dimensions of size 1; put lists of numbers or of tensors into one tensor; take the
    right one of at most three results; drop results after the expected ones; split one tensor into several.
    """
    if isinstance(actual, dict):
        actual = tuple(actual.values())
    if isinstance(expected, tuple):
        if isinstance(actual, torch.Tensor) and actual.dim() and len(actual) == len(expected):
            actual = actual.unbind()
        if not isinstance(actual, tuple | list) or len(actual) < len(expected):
            return ""
        pairs = list(zip(actual, expected, strict=False))
        if not all(_same(*pair, tolerance) or right_in_another_form(*pair, tolerance) for pair in pairs):
            return ""
        return RIGHT_NUMBERS if len(actual) == len(expected) else f"Its first {len(expected)} results are right."
    if isinstance(actual, tuple | list):
        if len(actual) <= _MOST_RESULTS and any(_same(one, expected, tolerance) for one in actual):
            return "One of its results is right: return only that one."
        actual = _in_one_tensor(actual)
    elif isinstance(actual, int | float):
        actual = _in_one_tensor([actual])
    if not isinstance(actual, torch.Tensor):
        return ""
    squeezed = Expected(expected.value.squeeze(), expected.tolerance)
    return RIGHT_NUMBERS if _same(actual.squeeze(), squeezed, tolerance) else ""


def plain_right_in_another_form(actual: Any, expected: Any) -> bool:
    """Return whether one trivial conversion makes a plain value equal to the expected one.

    The conversions: a tensor or float to the number that it holds, a tuple to a list or back, pairs to a dict.
    """
    if isinstance(actual, torch.Tensor) and actual.numel() == 1:
        actual = actual.item()
    if any(True for _ in tensors_in(actual)):
        return False
    if isinstance(actual, float) and type(expected) is int:
        return actual == expected
    if isinstance(actual, tuple | list) and isinstance(expected, tuple | list):
        return list(actual) == list(expected)
    if isinstance(actual, tuple | list) and isinstance(expected, dict):
        are_pairs = all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in actual)
        return are_pairs and [tuple(pair) for pair in actual] == list(expected.items())
    return type(actual) is type(expected) and bool(actual == expected)


def _in_one_tensor(items: Sequence[Any]) -> torch.Tensor | None:
    """Return a tensor of all elements; None unless these are numbers, or tensors of one shape."""
    rows = [_in_one_tensor(item) if isinstance(item, list | tuple) else item for item in items]
    tensors = [row.detach().to("cpu", torch.float64) for row in rows if isinstance(row, torch.Tensor)]
    if tensors and len(tensors) == len(rows) and all(one.shape == tensors[0].shape for one in tensors):
        return torch.stack(tensors)
    try:
        return torch.as_tensor(rows, dtype=torch.float64)
    except (ValueError, TypeError, RuntimeError, OverflowError):
        return None


def _same(actual: Any, expected: Any, tolerance: float | None) -> bool:
    return difference(actual, expected, str, lambda *_: "differs", tolerance=tolerance) is None

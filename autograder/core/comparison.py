"""Compares a student's value with the expected one, and says in words how they differ.

The words name shapes, places and sizes of differences, never a reference value of a hidden input.
Tolerances: `docs/design/hidden_tests.md`, section "Tolerances".
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import torch

from .arguments import tensors_in
from .complaints import with_article
from .lost_aspects import OF_FORM, OF_VALUE
from .packing import Opaque
from .values import ORDINALS as ORDINALS
from .values import RIGHT_NUMBERS, difference, plain_right_in_another_form, right_in_another_form
from .values import Expected as Expected

TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1e-2,
}
LARGE_LOGITS = 1e-3
"""For logits of 20 and more: right orders of scaling differ by more than 1e-5 there."""
_LONGEST_KEY = 60
GOLDEN = 1e-4
"""For values printed to four decimals."""


class Mismatch(AssertionError):
    """The student's value is not the expected one; `str()` says in what way.

    aspect: the aspect of the answer that is wrong: its value, or one of `core.lost_aspects`. details: what the search
    for the line that loses the aspect needs: an argument's number, a parameter's name, dtypes; empty if it needs none.
    """

    def __init__(self, message: str, aspect: str = OF_VALUE, details: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.aspect = aspect
        self.details = tuple(details)

    compared: tuple[Any, Any] | None = None
    """The value and the expected one. Hidden tests show them only to their authors; the student check shows them."""
    what = "The result"
    """The compared value, in words."""


class Unproven(Mismatch):
    """The call shows the property that is tested, but returns a wrong value: so it shows it of another computation.

    It costs points only if the hidden tests of values all pass: see `grading.scoring`.
    """


class OddForm(Mismatch):
    """A trivial conversion makes the result right: see `values.right_in_another_form`.

    right: what is right about the result, a sentence that ends the message.
    """

    def __init__(self, message: str, right: str) -> None:
        super().__init__(f"{message} {right}", OF_FORM)
        self.right = right


def golden(values: Any) -> Expected:
    """Values as they are printed in a source document, to four decimals."""
    return Expected(torch.as_tensor(values, dtype=torch.float64), GOLDEN)


def assert_close(actual: Any, expected: Any, *, tolerance: float | None = None, what: str = "The result") -> None:
    """Raises Mismatch unless `actual` is a tensor with the expected shape and values, or a tuple of such tensors.

    Raises TypeError where `expected` does not say how close a right answer comes.
    """
    if not _says_how_close(expected):
        raise TypeError(
            f"assert_close was given {describe(expected)} as what is expected, which does not say how close a right "
            f"answer comes: compare with what `reference` gives, with golden(...), or with Expected(value, tolerance)."
        )
    found = difference(actual, expected, describe, _places, tolerance=tolerance, what=what)
    if found:
        right = right_in_another_form(actual, expected, tolerance)
        wrong = OddForm(found, right) if right else Mismatch(found)
        wrong.compared, wrong.what = (actual, expected), what
        raise wrong


def _says_how_close(expected: Any) -> bool:
    return isinstance(expected, Expected) or (isinstance(expected, tuple) and all(map(_says_how_close, expected)))


def assert_equal(actual: Any, expected: Any, *, what: str = "The result") -> None:
    """Raises Mismatch unless two plain values (numbers, strings, dicts of them) are equal."""
    try:
        _assert_equal(actual, expected, what)
    except Mismatch as found:
        odd = plain_right_in_another_form(actual, expected)
        wrong = OddForm(str(found), RIGHT_NUMBERS) if odd else found
        wrong.compared = actual, expected
        raise wrong from None


def _assert_equal(actual: Any, expected: Any, what: str) -> None:
    if any(True for _ in tensors_in(actual)):
        raise Mismatch(f"{what} is or holds a tensor; plain values are expected.")
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected:
            if key not in actual:
                raise Mismatch(f"{what} has no entry for {key!r}.")
        for key, value in actual.items():
            if key not in expected:
                raise Mismatch(f"{what} has an entry for {_short(key)}, which does not belong there.")
            if type(value) is not type(expected[key]) or value != expected[key]:
                raise Mismatch(f"{what} has another number for {key!r}.")
    elif type(actual) is not type(expected) or actual != expected:
        raise Mismatch(f"{what} is {describe(actual)} and not what is expected.")


def assert_real(actual: torch.Tensor) -> None:
    """Raises Mismatch where the numbers are complex: whoever computes with them would lose a part without a word."""
    if actual.is_complex():
        raise Mismatch("The result is complex; real numbers are expected.")


def identical(one: Any, other: Any) -> bool:
    """Whether these are two tensors of the same type and shape, with the same numbers."""
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return both and one.dtype == other.dtype and torch.equal(one, other)


def any_identical(results: Sequence[Any]) -> bool:
    """Whether some two of these are identical."""
    return any(identical(one, other) for one, other in combinations(results, 2))


def row(actual: Any, number: int) -> Any:
    """One row of a matrix, for golden values that are printed a row at a time; what has no rows is left as it is."""
    return actual[number] if isinstance(actual, torch.Tensor) and actual.dim() > 1 and len(actual) > number else actual


def rows(actual: Any, number: int) -> Any:
    """The same row of each of several matrices; what is no tuple of them is left as it is."""
    return tuple(row(one, number) for one in actual) if isinstance(actual, tuple | list) else actual


def describe(value: Any) -> str:
    """What a value is, in a few words."""
    match value:
        case torch.Tensor():
            return f"a tensor of shape {tuple(value.shape)}"
        case None:
            return "None"
        case Opaque(type_name=type_name):
            return type_name if type_name.startswith("a tensor") else with_article(type_name)
    return with_article(type(value).__name__) + (f" of {len(value)}" if isinstance(value, tuple | list | dict) else "")


def _places(actual: torch.Tensor, expected: torch.Tensor, close: torch.Tensor) -> str:
    """Where two tensors differ and by how much."""
    if bool((broken := actual.isnan() & ~expected.isnan()).any()):
        return f"has NaN in {int(broken.sum())} of {broken.numel()} places{_first(broken)}."
    if bool((far := actual.isinf() & expected.isfinite()).any()):
        return f"is infinite in {int(far.sum())} of {far.numel()} places where it should not be{_first(far)}."
    if bool((left := actual.isfinite() & expected.isinf()).any()):
        return f"is finite in {int(left.sum())} of {left.numel()} places where it should be infinite{_first(left)}."
    gaps = (actual - expected).abs().masked_fill(close, 0.0).nan_to_num(posinf=torch.inf)
    if actual.dim() == 0:
        return f"differs by {gaps.item():.2g}."
    where = (gaps == gaps.max()).nonzero()[0].tolist()  # `unravel_index` would import sympy, for half a second
    places = f"{int((~close).sum())} of {close.numel()} places"
    return f"differs in {places}, by up to {gaps.max().item():.2g} at {where}.{_sums(actual, expected)}"


def _sums(actual: torch.Tensor, expected: torch.Tensor) -> str:
    """Where weights are expected: which row does not sum to 1, if one does not."""
    off = ~_near_one(actual.sum(-1))
    if bool((expected < 0).any()) or not bool(_near_one(expected.sum(-1)).all()) or not bool(off.any()):
        return ""
    if actual.dim() > 1 and bool(_near_one(actual.sum(-2)).all()):
        return " Its columns sum to 1; its rows should."
    if actual.dim() == 1:
        return f" It sums to {actual.sum().item():.4g}; weights sum to 1."
    row = off.nonzero()[0]
    return f" Row {row.tolist()} sums to {actual.sum(-1)[tuple(row)].item():.4g}; weights sum to 1."


def _near_one(sums: torch.Tensor) -> torch.Tensor:
    return torch.isclose(sums, torch.ones_like(sums), rtol=0.0, atol=1e-3)


def _short(key: Any) -> str:
    """A key of the student's, which may be of any length."""
    said = repr(key)
    return said if len(said) <= _LONGEST_KEY else f"{said[:_LONGEST_KEY]}…"


def _first(places: torch.Tensor) -> str:
    return f", first at {places.nonzero()[0].tolist()}" if places.dim() else ""

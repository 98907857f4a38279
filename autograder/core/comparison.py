"""Compare a student's value with the expected one, and describe the difference.

A message names shapes, positions and sizes of differences, never an expected value of a hidden input. The student check
shows the expected values of its public examples as well (`student_check.judgement`).
Tolerances: see `docs/design/hidden_tests.md`.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import torch

from .arguments import tensors_in
from .complaints import ORDINALS as ORDINALS
from .complaints import with_article
from .lost_aspects import OF_FORM, OF_VALUE
from .packing import Opaque


class Expected:
    """An expected value, and the tolerance within which an answer is right."""

    def __init__(self, value: Any, tolerance: float, size: float = 0.0) -> None:
        """size: that of the terms from which the value is computed, if they can be larger than the value's elements."""
        self.value = value
        self.tolerance = tolerance
        self.size = size

    def __getitem__(self, index: Any) -> "Expected":
        return Expected(self.value[index], self.tolerance, self.size)


RIGHT_NUMBERS = "Its numbers are right."
_LARGEST = 100.0
_MOST_RESULTS = 3
"""Longest list of results of which one may be right: a longer one could hold every plausible result."""


def as_expected(value: Any, tolerance: float) -> Any:
    """Replace each tensor of a value, also in nested lists and dicts, by an `Expected` with this tolerance."""
    if isinstance(value, tuple | list):
        items = [as_expected(item, tolerance) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {key: as_expected(item, tolerance) for key, item in value.items()}
    return Expected(value.detach(), tolerance) if isinstance(value, torch.Tensor) else value


def largest_size(*values: torch.Tensor) -> float:
    """Return the size of the largest element of tensors; 0 if they have none. Elements above 100 do not count.

    Larger elements belong to tests of large scores, or mask others (-1e38). The other elements are not sums of such
    terms.
    """
    sizes = (value.detach().double().abs() for value in values)
    usual = [float(size[size <= _LARGEST].max()) for size in sizes if bool((size <= _LARGEST).any())]
    return max(usual, default=0.0)


def right_elements(actual: torch.Tensor, expected: torch.Tensor, tolerance: float, size: float = 0.0) -> torch.Tensor:
    """Return for each element of a float64 tensor whether it is right.

    An element is right if its error is at most the tolerance times (1 + the size of the largest expected element), or
    if both elements are NaN or the same infinity. The largest element counts because a small element can be the sum of
    large terms that cancel, and the rounding error of a sum is as large as that of its terms.

    size: used instead of the largest element's if it is larger.

    Example: the gradients of a weight are between -50 and 50, and one of them is 0.01, a sum of terms of about 50 and
    -50. Each term has a rounding error of up to 3e-6 in float32, so an error of 1e-5 in the sum is no mistake.
    """
    sizes = expected.abs().clamp(min=max(size, largest_size(expected)))
    is_close = (actual - expected).abs() <= tolerance * (1 + sizes)
    is_finite = actual.isfinite() & expected.isfinite()
    return (is_close & is_finite) | (actual == expected) | (actual.isnan() & expected.isnan())


def difference(
    actual: Any,
    expected: Any,
    describe_value: Callable[[Any], str],
    describe_elements: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], str],
    *,
    tolerance: float | None = None,
    what: str = "The result",
) -> str | None:
    """Return a message if a value differs from the expected one, else None.

    expected: an `Expected` tensor, None, which accepts any value, or a tuple of these and of ints.
    describe_value: names the type and shape of a value.
    describe_elements: says how two tensors of one shape differ; its third argument is true where they are close.
    tolerance: used instead of the expected values' own. what: the subject of the message.
    """
    if expected is None:
        return None
    if isinstance(expected, tuple):
        if not isinstance(actual, tuple | list) or len(actual) != len(expected):
            things = "results" if any(type(one) is int for one in expected) else "tensors"
            return f"{what} is {describe_value(actual)}; {len(expected)} {things} are expected."
        differences = (
            difference(one, other, describe_value, describe_elements, tolerance=tolerance, what=f"The {nth} result")
            for nth, one, other in zip(ORDINALS, actual, expected, strict=False)
        )
        return next(filter(None, differences), None)
    if type(expected) is int:
        if type(actual) is not int:
            return f"{what} is {describe_value(actual)}; an int is expected."
        own, right = torch.tensor(float(actual)), torch.tensor(float(expected))
        return None if actual == expected else f"{what} {describe_elements(own, right, own == right)}"
    shape = tuple(expected.value.shape)
    if not isinstance(actual, torch.Tensor):
        return f"{what} is {describe_value(actual)}; a tensor of shape {shape} is expected."
    if actual.shape != shape:
        return f"{what} has shape {tuple(actual.shape)}; {shape} is expected."
    if actual.is_complex():
        return f"{what} is complex; real numbers are expected."
    tolerance = expected.tolerance if tolerance is None else tolerance
    actual, right = actual.detach().to("cpu", torch.float64), expected.value.double()
    if bool(((actual - right).abs() < tolerance * (1 + right.abs())).all()):
        return None  # the usual case; the comparison below takes ten times as long
    is_close = right_elements(actual, right, tolerance, expected.size)
    return None if bool(is_close.all()) else f"{what} {describe_elements(actual, right, is_close)}"


def right_in_another_form(actual: Any, expected: Any, tolerance: float | None = None) -> str:
    """Return what is right, in a sentence, if one trivial conversion makes a wrong result right; else an empty string.

    The conversions: add or drop dimensions of size 1; put lists of numbers or of tensors into one tensor; take the
    right one of at most three results; drop results after the expected ones; split one tensor into several.
    """
    if type(expected) is int:
        return RIGHT_NUMBERS if plain_right_in_another_form(actual, expected) else ""
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
    squeezed = Expected(expected.value.squeeze(), expected.tolerance, expected.size)
    return RIGHT_NUMBERS if _same(actual.squeeze(), squeezed, tolerance) else ""


def plain_right_in_another_form(actual: Any, expected: Any) -> bool:
    """Return whether one trivial conversion makes a plain value equal to the expected one.

    The conversions: tensors or a float to the numbers that they hold, a tuple to a list or back, pairs to a dict.
    """
    actual = _with_plain_numbers(actual)
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


def _with_plain_numbers(value: Any) -> Any:
    """Return the number in a tensor of one element, or a list, tuple or dict with the numbers in its tensors."""

    def number(one: Any) -> Any:
        return one.item() if isinstance(one, torch.Tensor) and one.numel() == 1 else one

    if isinstance(value, dict):
        return {key: number(one) for key, one in value.items()}
    return type(value)(map(number, value)) if type(value) in (list, tuple) else number(value)


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


TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1e-2,
}
LARGE_LOGITS = 1e-3
"""Tolerance for logits of 20 and more, for which right answers may differ by more than 1e-5."""
_LONGEST_KEY = 60
GOLDEN = 1e-4
"""Tolerance for values printed to four decimals."""


class Mismatch(AssertionError):
    """The student's value is not the expected one; `str()` describes the difference.

    aspect: the wrong aspect of the answer: its value, or another aspect of `core.lost_aspects`. details: input of the
    search for the line that loses the aspect: an argument's number, a parameter's name, or dtypes. May be empty.
    behaviour: what the student check compares with common mistakes besides the message: a returned value, or words
    instead of a message with numbers that are chance or free.
    """

    def __init__(
        self, message: str, aspect: str = OF_VALUE, details: Sequence[str] = (), behaviour: Any = None
    ) -> None:
        super().__init__(message)
        self.aspect = aspect
        self.details = tuple(details)
        self.behaviour = behaviour

    compared: tuple[Any, Any] | None = None
    """The student's value and the expected one. The student check shows them, hidden tests only to their authors."""
    what = "The result"
    """The compared value, in words."""


class Unproven(Mismatch):
    """Raised if a call has the tested property but returns a wrong value, so that the property proves nothing.

    It costs points only if all hidden tests of values pass: see `grading.scoring`.
    """


class OddForm(Mismatch):
    """Raised if the result's form is wrong but a trivial conversion makes it right: see `right_in_another_form`.

    right: a sentence on what is right about the result, at the end of the message.
    """

    def __init__(self, message: str, right: str) -> None:
        super().__init__(f"{message} {right}", OF_FORM)
        self.right = right


def golden(values: Any) -> Expected:
    """Return values that a source document prints to four decimals, with the tolerance for them."""
    return Expected(torch.as_tensor(values, dtype=torch.float64), GOLDEN)


def assert_close(actual: Any, expected: Any, *, tolerance: float | None = None, what: str = "The result") -> None:
    """Raise Mismatch unless `actual` is a tensor with the expected shape and values, or a tuple of such tensors.

    expected: an `Expected`, or a tuple of them, of ints, and of None, which accepts any value. Anything else has no
    tolerance and raises TypeError.
    """
    if not _says_how_close(expected):
        raise TypeError(
            f"assert_close has no tolerance for the expected value {describe(expected)}: compare with the result of "
            f"`reference`, with golden(...), or with Expected(value, tolerance)."
        )
    message = difference(actual, expected, describe, _describe_elements, tolerance=tolerance, what=what)
    if message:
        right = right_in_another_form(actual, expected, tolerance)
        mismatch = OddForm(message, right) if right else Mismatch(message)
        mismatch.compared, mismatch.what = (actual, expected), what
        raise mismatch


def _says_how_close(expected: Any) -> bool:
    if isinstance(expected, tuple):
        return all(one is None or type(one) is int or _says_how_close(one) for one in expected)
    return isinstance(expected, Expected)


def assert_equal(actual: Any, expected: Any, *, what: str = "The result") -> None:
    """Raise Mismatch unless two plain values (numbers, strings, dicts of them) are equal."""
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
                raise Mismatch(f"{what} has an entry for {_short(key)}, which should not be there.")
            if type(value) is not type(expected[key]) or value != expected[key]:
                raise Mismatch(f"{what} has a wrong number for {key!r}.")
    elif type(actual) is not type(expected) or actual != expected:
        raise Mismatch(f"{what} is {describe(actual)}, which is not the expected value.")


def assert_real(actual: torch.Tensor) -> None:
    """Raise Mismatch if the tensor is complex, because comparing it as real would drop the imaginary part."""
    if actual.is_complex():
        raise Mismatch("The result is complex; real numbers are expected.")


def identical(one: Any, other: Any) -> bool:
    """Return whether both are tensors of the same dtype and shape with equal elements."""
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return both and one.dtype == other.dtype and torch.equal(one, other)


def any_identical(results: Sequence[Any]) -> bool:
    """Return whether any two of the results are identical tensors."""
    return any(identical(one, other) for one, other in combinations(results, 2))


def only(expected: Any, *positions: int) -> Any:
    """Return the expected results with None, which accepts any result, at all positions but these."""
    return tuple(one if at in positions else None for at, one in enumerate(expected))


def row(actual: Any, number: int) -> Any:
    """Return one row of a matrix, for documents that print single rows; return any other value unchanged."""
    return actual[number] if isinstance(actual, torch.Tensor) and actual.dim() > 1 and len(actual) > number else actual


def rows(actual: Any, number: int) -> Any:
    """Return the same row of each matrix in a tuple or list; return any other value unchanged."""
    return tuple(row(one, number) for one in actual) if isinstance(actual, tuple | list) else actual


def describe(value: Any) -> str:
    """Return type and shape of a value in words, such as `a tensor of shape (2, 3)`."""
    match value:
        case torch.Tensor():
            return f"a tensor of shape {tuple(value.shape)}"
        case None:
            return "None"
        case Opaque(type_name=type_name):
            return type_name if type_name.startswith("a tensor") else with_article(type_name)
    return with_article(type(value).__name__) + (f" of {len(value)}" if isinstance(value, tuple | list | dict) else "")


def _describe_elements(actual: torch.Tensor, expected: torch.Tensor, close: torch.Tensor) -> str:
    """Return where and by how much two tensors of one shape differ."""
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
    return f"differs in {places}, by up to {gaps.max().item():.2g} at {where}.{_row_sums(actual, expected)}"


def _row_sums(actual: torch.Tensor, expected: torch.Tensor) -> str:
    """Return a sentence on the first row that does not sum to 1, if the expected rows do; else an empty string."""
    off = ~_near_one(actual.sum(-1))
    if bool((expected < 0).any()) or not bool(_near_one(expected.sum(-1)).all()) or not bool(off.any()):
        return ""
    if actual.dim() > 1 and bool(_near_one(actual.sum(-2)).all()):
        return " Its columns sum to 1; its rows should."
    if actual.dim() == 1:
        return f" It sums to {actual.sum().item():.4g} instead of 1."
    row = off.nonzero()[0]
    return f" Row {row.tolist()} sums to {actual.sum(-1)[tuple(row)].item():.4g} instead of 1."


def _near_one(sums: torch.Tensor) -> torch.Tensor:
    return torch.isclose(sums, torch.ones_like(sums), rtol=0.0, atol=1e-3)


def _short(key: Any) -> str:
    """Return a key as text of limited length, because the student chooses it."""
    text = repr(key)
    return text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]}…"


def _first(places: torch.Tensor) -> str:
    return f", first at {places.nonzero()[0].tolist()}" if places.dim() else ""

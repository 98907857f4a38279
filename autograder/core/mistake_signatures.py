"""Signatures of common mistakes: code that fails the same tests in the same way has that mistake.

The student check compares signatures of its examples, and grading those of the hidden tests. The signature of a failed
example or test is made of what its judge found: the message, and the value that is wrong. So code may differ from a
mistake in everything that no example inspects.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .comparison import Expected, Mismatch, difference
from .judgement import Explanation, explain, explained_by
from .observation import Raised, StudentFault, has_own_words, without_style

_MOST_SUMMED = 100_000
"""Most elements of a tensor that is summed; right results in hidden tests have less than a tenth of that."""
ANY_GRADIENTS = "any gradients"
"""Field of a released mistake: true if its sentence says nothing about gradients."""
Signature = list[int | float]
"""A checksum of everything exact, and sums over the elements of the wrong value."""


@dataclass(frozen=True)
class CommonMistakes:
    """The common mistakes that code shows in its failed examples."""

    sentences: tuple[str, ...] = ()
    are_together: bool = False
    """True if the code has all of these mistakes; false if it has one of them."""
    explained: int = 0
    """The number of failed examples in which they show the same as the code."""


def matching_mistakes(
    signatures: Mapping[int, Signature], mistakes: Sequence[Mapping[str, Any]], of_gradients: Collection[int] = ()
) -> CommonMistakes:
    """Return the common mistakes that explain failed examples. signatures: by the examples' numbers.

    mistakes: as released, each with the sentences that the examples cannot tell apart. of_gradients: the numbers of
    examples that inspect only gradients, which depend on how a wrong value is computed. If nothing else explains an
    answer, they are compared only for mistakes about gradients.
    """
    found = explain([_explanation(signatures, mistake, ()) for mistake in mistakes], signatures.keys())
    if not found:
        found = explain([_explanation(signatures, mistake, of_gradients) for mistake in mistakes], signatures.keys())
    if any(len(one.misconception) > 1 for one in found):
        found = found[:1]
    sentences = tuple(sentence for one in found for sentence in one.misconception)
    return CommonMistakes(sentences, len(found) > 1, len(explained_by(found)))


def _explanation(
    signatures: Mapping[int, Signature], mistake: Mapping[str, Any], of_gradients: Collection[int]
) -> Explanation[tuple[str, ...]]:
    """Return a mistake as an explanation. of_gradients: examples that need only fail, if others show the mistake."""
    shows = {int(number): signature for number, signature in mistake["shows"].items()}
    common = shows.keys() & signatures
    alike = {number for number in common if match(signatures[number], shows[number])}
    if mistake.get(ANY_GRADIENTS) and not alike <= set(of_gradients):
        alike |= common.intersection(of_gradients)
    sentences = tuple(mistake["sentences"])
    numbers = any(has_numbers(signatures[number]) for number in alike)
    return Explanation(sentences, sentences, frozenset(alike), frozenset(shows) - alike, numbers)


def signature_of(error: BaseException) -> Signature:
    """Return the signature of an example that failed with this error.

    An exception counts with its words, which contain the sizes that met, unless its author chose them.
    """
    kind = error.type_name if isinstance(error, Raised) else type(error).__name__
    try:
        if isinstance(error, Mismatch):
            return _signature_of(*_wrong_part(error))
        if isinstance(error, Raised):  # its text has the line, which differs between answers
            has_words, words = not error.has_own_words, error.message
        else:
            has_words, words = isinstance(error, StudentFault) or not has_own_words(error), str(error)
        return [_checksum(f"{kind}: {without_style(words)}"), 1.0] if has_words else [_checksum(kind)]
    except Exception:  # the answer's own class of tensors, or a list that holds itself
        return [_checksum(kind)]


def whole_signature(error: BaseException) -> Signature:
    """Return the signature of a hidden test's error. If a call has several results, the right ones count, too."""
    results = error.compared[0] if isinstance(error, Mismatch) and error.compared else None
    try:
        return [*signature_of(error), *(value_sums(results) if isinstance(results, tuple | list) else [])]
    except Exception:  # as above
        return signature_of(error)


def is_telling(signature: Signature) -> bool:
    """Return whether a signature is more than an error of the code's own `raise`, in which many mistakes end."""
    return any(isinstance(number, float) for number in signature)


def has_numbers(signature: Signature) -> bool:
    """Return whether a signature is of more than NaN and infinities."""
    return any(isinstance(number, float) and number for number in signature)


def match(one: Signature, other: Signature) -> bool:
    """Return whether two signatures are equal but for the last digits."""
    return len(one) == len(other) and all(map(is_near, one, other))


def value_sums(value: Any) -> list[float]:
    """Return sums over the elements of a value, which differ between most values."""
    return _described(value)[1]


def is_near(one: float, other: float) -> bool:
    """Return whether two numbers are equal but for the last digits; integers must be equal in all digits."""
    if isinstance(one, int) or isinstance(other, int):  # a checksum
        return one == other
    return abs(one - other) <= 1e-3 * (1 + min(abs(one), abs(other)))


def _signature_of(what: Any, value: Any, right: Any) -> Signature:
    exact, sums = _described(value)
    has_shape = isinstance(right, Expected) and getattr(value, "shape", None) == right.value.shape
    if has_shape and match(sums, value_sums(right.value)):
        return [_checksum(f"{what} nearly"), _size(value - right.value)]
    return [_checksum(repr((what, exact))), *(sums or [1.0])]


def _wrong_part(mismatch: Mismatch) -> tuple[Any, Any, Any]:
    """Return what is wrong in words, the wrong value, and the right one: of several results the first wrong one."""
    if mismatch.compared is None:
        shown = mismatch.behaviour
        return (shown, None, None) if isinstance(shown, str) else (str(mismatch), shown, None)
    actual, expected = mismatch.compared
    if isinstance(expected, tuple) and isinstance(actual, tuple | list) and len(actual) == len(expected):
        for number, (one, right) in enumerate(zip(actual, expected, strict=True)):
            if difference(one, right, str, lambda *_: "differs") is not None:
                return (mismatch.what, number), one, right
    return mismatch.what, actual, expected


def _size(gap: torch.Tensor) -> float:
    """Return a number that is near that of another gap if one is at most ten times as large as the other."""
    return float(gap.detach().double().nan_to_num(0.0, 0.0, 0.0).abs().max().clamp(min=1e-30).log10()) / 1000


def _described(value: Any) -> tuple[Any, list[float]]:
    """Return the exact part of a value (shape, integers, words), and sums over its elements."""
    if isinstance(value, tuple | list):
        parts = [_described(item) for item in value]
        return [exact for exact, _ in parts], [number for _, sums in parts for number in sums]
    if isinstance(value, dict):
        return sorted(map(repr, value.items())), []
    if isinstance(value, float):
        return _described(torch.tensor(value))
    if isinstance(value, int | str):
        return value, []
    if not isinstance(value, torch.Tensor):
        return type(value).__name__, []
    if value.numel() > _MOST_SUMMED:
        return list(value.shape), []
    flat = value.detach().flatten().double()
    broken = [int(flat.isnan().sum()), int((flat == torch.inf).sum()), int((flat == -torch.inf).sum())]
    flat = flat.nan_to_num(0.0, 0.0, 0.0)
    flat = flat.sign() * flat.abs().log1p()  # so that one huge element does not hide the others
    return (list(value.shape), broken), [float(flat.abs().sum()), float(_weighed(flat).sum())]


def _weighed(values: torch.Tensor) -> torch.Tensor:
    """Return each element times a factor of its position, so that the sum depends on the order."""
    places = torch.arange(1, values.numel() + 1, dtype=torch.float64).reshape(values.shape)
    return values * torch.cos(places * 2.399963)  # the golden angle: the cosines never repeat


def _checksum(exact: str) -> int:
    return zlib.crc32(exact.encode())

"""Judge the matrices of an attention head by its weights, because many matrices give the same weights.

Each token of a sentence is a vector of its word and its position, both one-hot. The head is causal.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .comparison import RIGHT_NUMBERS, Mismatch, OddForm, describe

_CLOSE = 0.01


class Attended(NamedTuple):
    """A head's weights and result for one sentence."""

    head: str
    words: torch.Tensor  # (T,)
    one_hot: torch.Tensor  # (T, num_words)
    weights: torch.Tensor  # (T, T)
    result: torch.Tensor  # (T, num_words)
    has_batch: bool
    """True if each matrix has a first dimension of size 1, (1, d, d_k)."""


def attended(sentence: Sequence[int], found: Any, head: str, num_words: int, num_places: int) -> Attended:
    """Run a head on a sentence. found: its matrices, as a student's code returns them.

    Raises Mismatch unless these are three matrices that fit together.
    """
    has_batch = _has_batch(found)
    query, key, value = _matrices([one[0] for one in found] if has_batch else found, num_words, num_places)
    words = torch.tensor(sentence)
    one_hot = torch.eye(num_words, dtype=torch.float64)[words]
    x = torch.cat([one_hot, torch.eye(num_places, dtype=torch.float64)[: len(words)]], dim=-1)  # (T, d)
    scores = (x @ query) @ (x @ key).T / math.sqrt(query.shape[1])
    weights = torch.softmax(scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf), dim=-1)
    return Attended(head, words, one_hot, weights, weights @ (x @ value), has_batch)


def _has_batch(found: Any) -> bool:
    return (
        isinstance(found, tuple | list)
        and bool(found)
        and all(isinstance(one, torch.Tensor) and one.dim() == 3 and len(one) == 1 for one in found)
    )


def _matrices(found: Any, num_words: int, num_places: int) -> list[torch.Tensor]:
    d = num_words + num_places
    if not isinstance(found, tuple | list) or len(found) != 3:
        raise Mismatch(f"The result is {describe(found)}; W_query, W_key and W_value are expected.")
    for name, one in zip(("W_query", "W_key", "W_value"), found, strict=True):
        if not isinstance(one, torch.Tensor) or one.dim() != 2 or len(one) != d or one.is_complex():
            raise Mismatch(f"{name} is {describe(one)}; a matrix with {d} rows is expected.")
        if not bool(one.isfinite().all()):
            raise Mismatch(f"{name} has inf or NaN. Use finite numbers: large ones are enough.")
    query, key, value = (one.detach().double() for one in found)
    if query.shape != key.shape:
        raise Mismatch("W_query and W_key have different widths, so queries cannot be multiplied with keys.")
    if value.shape[1] != num_words:
        raise Mismatch(f"W_value is {describe(value)}; a tensor of shape {(d, num_words)} is expected.")
    return [query, key, value]


def assert_attends(seen: Attended) -> None:
    """Raise Mismatch unless the weights follow the pattern of the head's name, such as `previous`."""
    right = _patterns(seen.words)[seen.head]
    if not _is_close(seen.weights, right):
        i, j = ((seen.weights - right).abs() > _CLOSE).nonzero()[0].tolist()
        raise Mismatch(
            f'In "{seen.head}", token {i} of {len(seen.words)} gives token {j} the weight {seen.weights[i, j]:.3f}; '
            f"{right[i, j]:.3f} is expected."
        )
    _assert_no_batch(seen)


def assert_mixes(seen: Attended) -> None:
    """Raise Mismatch unless the result is the weights times the one-hot words."""
    if not _is_close(seen.result, seen.weights @ seen.one_hot):
        raise Mismatch(f'In "{seen.head}", the result is not the weighted sum of the words\' one-hot vectors.')
    _assert_no_batch(seen)


def _assert_no_batch(seen: Attended) -> None:
    if seen.has_batch:
        raise OddForm("Each matrix has an extra dimension of size 1.", RIGHT_NUMBERS)


def behaviour(seen: Attended) -> tuple[Any, ...]:
    """Return features of the head by which misconceptions differ, regardless of the chosen matrices."""
    patterns = _patterns(seen.words)
    alike = sorted(name for name, one in patterns.items() if _is_close(seen.weights, one))
    is_peaked = bool((seen.weights.amax(dim=-1) > 1 - _CLOSE).all())
    meant = patterns[seen.head] > 0
    wanted, average = ((one * meant).sum(dim=-1) for one in (seen.weights, patterns["average"]))
    turns_away = bool((wanted < average - _CLOSE).any())
    is_zero = _is_close(seen.result, torch.zeros_like(seen.result))
    return alike, is_peaked, turns_away, _mixture(seen), is_zero, seen.has_batch


def behaviour_without_weights(mismatch: Mismatch) -> str:
    """Return the message on an unusable result without the matrices' width, which students choose."""
    return re.sub(r"shape \((\d+), \d+\); a matrix", r"shape (\1, ...); a matrix", str(mismatch))


def _patterns(words: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the weights, (T, T), of each head by its name, and those of some misconceptions."""
    num_tokens = len(words)
    i, j = torch.arange(num_tokens)[:, None], torch.arange(num_tokens)
    seen = j <= i
    where = {
        "itself": i == j,
        "first": j.expand(num_tokens, -1) == 0,
        "previous": j == (i - 1).clamp(min=0),
        "average": seen,
        "same word": seen & (words[:, None] == words),
        "other words": seen & ((words[:, None] != words) | (i == j)),
        "two before": j == (i - 2).clamp(min=0),
        "word 0": seen & (words == 0),
    }
    return {name: one / one.sum(dim=-1, keepdim=True) for name, one in where.items()}


def _mixture(seen: Attended) -> str:
    """Return a name for the relation of the result to the right mixture of words."""
    result, right = seen.result, seen.weights @ seen.one_hot
    if _is_close(result, right):
        return "as wanted"
    if result.shape != right.shape:
        return "of another shape"
    scale = (result * right).sum() / (right * right).sum()
    if _is_close(result, scale * right):
        return "scaled"
    return "shifted" if _is_close(result, right + (result - right).mean()) else "otherwise"


def _is_close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool(((one - other).abs() <= _CLOSE).all())

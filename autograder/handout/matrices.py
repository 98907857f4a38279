"""Where a result differs from the expected one: both as matrices, the places that differ marked."""

from dataclasses import dataclass
from typing import Any

import torch

from ..compare.values import close
from .trial import Call
from .written_values import as_value

_MOST = 8
"""Rows and columns that are shown."""
_LARGE = 1e4
_MORE_DIGITS = (".6f", ".8g", ".10g", ".12g")


@dataclass
class Beside:
    """A matrix of the student's and the expected one; `wrong` says where they differ."""

    where: str
    own: list[list[str]]
    right: list[list[str]]
    wrong: list[list[bool]]
    cut: bool
    """Whether there is more of them."""


def beside(call: Call | None) -> Beside | None:
    """The first matrix in which the call's result differs; None where there is none to show."""
    if call is None or "result" not in call.step:
        return None
    pairs: list[tuple[Any, Any]] = [(call.value, as_value(call.step["result"]))]
    if isinstance(pairs[0][1], tuple) and isinstance(call.value, tuple | list):
        pairs = list(zip(call.value, pairs[0][1], strict=False))
    for own, right in pairs:
        both = isinstance(own, torch.Tensor) and isinstance(right, torch.Tensor)
        if not both or own.shape != right.shape or not own.dim() or not own.numel() or own.is_complex():
            continue
        found = _first(own.detach().double(), right.double(), call.step.get("close", 1e-4))
        if found:
            return found
    return None


def _first(own: torch.Tensor, right: torch.Tensor, tolerance: float) -> Beside | None:
    wrong = ~close(own, right, tolerance)
    if not bool(wrong.any()):
        return None
    leading = tuple(wrong.nonzero()[0].tolist())[:-2] if own.dim() > 2 else ()
    own, right, wrong = ((one[leading] if leading else one).reshape(-1, one.shape[-1]) for one in (own, right, wrong))
    row, column = (max(0, int(place) - _MOST + 1) for place in wrong.nonzero()[0])
    part = slice(row, row + _MOST), slice(column, column + _MOST)
    cut = own.shape[0] > _MOST or own.shape[1] > _MOST
    where = [f"[{', '.join(map(str, leading))}]"] if leading else []
    if cut:
        where.append(f"from row {row} and column {column} on")
    own, right, wrong = own[part], right[part], wrong[part]
    own_shown, right_shown = _apart(own, right, wrong)
    return Beside(", ".join(where), own_shown, right_shown, wrong.tolist(), cut)


def _apart(own: torch.Tensor, right: torch.Tensor, wrong: torch.Tensor) -> list[list[list[str]]]:
    """Both in so many digits that what differs looks different."""
    shown = [_numbers(one, _digits(one)) for one in (own, right)]
    for digits in _MORE_DIGITS:
        if all(
            not differs or one != other
            for rows in zip(*shown, wrong.tolist(), strict=True)
            for one, other, differs in zip(*rows, strict=True)
        ):
            break
        shown = [_numbers(one, digits) for one in (own, right)]
    return shown


def _numbers(matrix: torch.Tensor, digits: str) -> list[list[str]]:
    return [[f"{number:{digits}}" for number in row] for row in matrix.tolist()]


def _digits(matrix: torch.Tensor) -> str:
    """As many everywhere, so that they can be compared from row to row."""
    finite = matrix[matrix.isfinite()]
    whole = bool((finite == finite.round()).all())
    return ".4g" if bool((finite.abs() >= _LARGE).any()) else ".0f" if whole else ".4f"

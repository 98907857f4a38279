"""What is right on the telling cases, written down for the check that students get: it is told where they go wrong."""

import base64
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any

import torch

from ..tracing.case import TellingCase
from ..tracing.reference import Reference, Right, comparable
from ..tracing.written_reference import BY_HAND, LARGEST, OUT_OF_SCALE, given_in, read_tensor
from .finding import known
from .telling_cases import telling_cases
from .written_calls import as_json

_CLOSE = 2e-6
"""As near as what is read comes to what was written: a tenth of what is asked of an answer's tensors."""
_DIGITS = 5e-5
"""Of a number that is written out, since a student reads four of its digits."""
_ALIKE = 1e-7
"""Two tensors this near to each other are one, made in two ways."""
_HUGE = 1e6

Written = dict[str, Any]


def of_exercise(unit: str, exercise: str) -> dict[str, Any]:
    """An exercise's telling cases with what is right on each; an exercise may have none."""
    found = [(case, known(unit, case)) for case in telling_cases(unit, exercise)]
    operators = sorted({one.operator for _, right in found if right for one in right.rights})
    cases = [_Writing(right, operators).case() if right else {**_about(case), "silent": True} for case, right in found]
    return {"operators": operators, "cases": cases}


def _about(case: TellingCase) -> Written:
    """What is called."""
    about: Written = {"args": [as_json(arg) for arg in case.arguments]}
    if case.built is not None:
        about["built"] = list(case.built)
        about["parameters"] = {name: dict(rule) for name, rule in (case.rules or {}).items()}
    if case.through:
        about["through"] = list(case.through)
    if case.untold:
        about["untold"] = sorted(case.untold)
    return about


class _Writing:
    """Writes one case down; what is written is read at once, so that what comes of it later is made of the same."""

    def __init__(self, right: Reference, operators: Sequence[str]) -> None:
        self._right = right
        self._operators = operators
        self._given = given_in(right.case)
        self._read: list[Right] = []

    def case(self) -> Written:
        rights = [written for one in self._right.rights if not one.is_part and (written := self._one(one))]
        numbers = range(len(self._right.before))
        return {
            **_about(self._right.case),
            "rights": rights,
            "result": [self._tensor(one) for one in self._right.result],
            "before": [sorted(self._right.before[number]) for number in numbers],
            "inputs": [self._right.inputs[number] for number in numbers],
            "scaled": self._scaled(),
        }

    def _one(self, right: Right) -> Written | None:
        is_anothers = right.number is None and not right.step
        if is_anothers and any(_is_near(one.values, right.values, _ALIKE) for one in self._read):
            return None
        written = self._tensor(right.values)
        values = read_tensor(written, self._given, self._read)
        self._read.append(Right(values, right.operator, right.number, right.step))
        written["operator"] = self._operators.index(right.operator)
        if right.number is not None:
            written["number"] = right.number
        if right.step:
            written["step"] = right.step
        return written

    def _tensor(self, values: torch.Tensor) -> Written:
        for short in self._in_short(values):
            if _is_near(read_tensor(short, self._given, self._read), values, _CLOSE):
                return short
        return packed_numbers(values)

    def _in_short(self, values: torch.Tensor) -> Iterator[Written]:
        """Ways in which a tensor may be told without its numbers, most of them wrong."""
        if bool((values == values.round()).all()) and bool((values.abs() < _HUGE).all()):
            yield {"shape": list(values.shape), "whole": values.flatten().int().tolist()}
        others = [({"given": at}, one) for at, one in enumerate(self._given)]
        others += [({"of": at}, one.values) for at, one in enumerate(self._read)]
        for which, one in others:
            yield from ({**which, **how} for how in _turned(one, values))
        for which, one in others:
            yield from ({**which, **how} for how in ways_to_fill(one, values))
            yield from ({**which, "by hand": way} for way in BY_HAND if one.dim() == values.dim())
        for which, one in others:
            yield from ({**which, **how} for how in _parts(one, values))

    def _scaled(self) -> list[tuple[int, float]]:
        found: list[tuple[int, float]] = []
        for wanted in self._right.scaled:
            if any(_is_near(self._read[of].values.squeeze() * by, wanted, _CLOSE) for of, by in found):
                continue
            for of, one in enumerate(self._read):
                by = _factor(one.values, wanted)
                if by is not None and _is_near(one.values.squeeze() * by, wanted, _CLOSE):
                    found.append((of, by))
                    break
        return found


def _turned(other: torch.Tensor, values: torch.Tensor) -> Iterator[Written]:
    """In another shape, with the dimensions in another order, or times a number."""
    factor = _factor(other, values)
    if factor is None:
        return
    about: Written = {} if other.shape == values.shape else {"shape": list(values.shape)}
    if abs(factor - 1) > _ALIKE:
        about["times"] = factor
    yield about
    for order in permutations(range(other.squeeze().dim())):
        yield {**about, "shape": list(values.shape), "order": list(order)}


def ways_to_fill(other: torch.Tensor, values: torch.Tensor) -> Iterator[Written]:
    """With one number in some places."""
    if other.shape != values.shape or not values.numel():
        return
    first, second = comparable(other).flatten(), comparable(values).flatten()
    differs = (first - second).abs() > _CLOSE
    filled = second[differs]
    if len(filled) and bool((filled == filled[0]).all()):
        bits = int("".join("01"[one] for one in differs.tolist()), 2)
        number = float(values.flatten()[differs][0])
        yield {"filled": number if math.isfinite(number) else str(number), "hidden": f"{bits:x}"}


def _parts(other: torch.Tensor, values: torch.Tensor) -> Iterator[Written]:
    """One of several parts of equal size."""
    if not 1 < values.numel() < other.numel() or other.numel() % values.numel():
        return
    pieces, total = other.numel() // values.numel(), float(comparable(values).sum())
    for dim, size in enumerate(other.shape):
        for piece in range(pieces if size % pieces == 0 else 0):
            part = dim, piece * size // pieces, size // pieces
            if abs(float(comparable(other.narrow(*part)).sum()) - total) < 1e-4 * (1 + abs(total)):
                yield {"part": part, "shape": list(values.shape)}


def _is_near(one: torch.Tensor, other: torch.Tensor, close: float) -> bool:
    if one.shape != other.shape:
        return False
    first, second = comparable(one), comparable(other)
    return bool(((first - second).abs() <= close * (1 + second.abs())).all())


def _factor(one: torch.Tensor, other: torch.Tensor) -> float | None:
    """What the first could be multiplied with, its numbers in some other order, to make the second."""
    if one.numel() != other.numel() or not one.numel():
        return None
    (mine, my_length, my_sum, my_count), (its, its_length, its_sum, its_count) = _sums(one), _sums(other)
    if my_count != its_count:
        return None
    factor = its / mine if mine else 1.0
    if not math.isclose(my_length * factor, its_length, rel_tol=1e-4, abs_tol=1e-9):
        return None
    if abs(my_sum) > 1e-3 and my_sum * its_sum < 0:
        factor = -factor
    return factor


@lru_cache(maxsize=4096)
def _sums(values: torch.Tensor) -> tuple[float, float, float, int]:
    """The sum of the numbers without their signs, their length as a vector, their sum and how many are finite."""
    numbers = values[values.isfinite()]
    return float(numbers.abs().sum()), float(numbers.norm()), float(numbers.sum()), len(numbers)


def packed_numbers(values: torch.Tensor) -> Written:
    """The numbers themselves, as `numbers_in` reads them."""
    flat = values.flatten().double()
    is_number = flat.isfinite()
    numbers = flat[is_number]
    unit = float(numbers.abs().max()) / LARGEST if len(numbers) and bool(numbers.any()) else 1.0
    counts = (flat.nan_to_num(0.0, 0.0, 0.0) / unit).round().long()
    near = torch.minimum(_DIGITS * numbers.abs(), _CLOSE * (1 + numbers.abs()) / 2)
    if bool(((counts * unit)[is_number] - numbers).abs().gt(near).any()):
        return {"shape": list(values.shape), "packed": _text(flat.float().view(torch.uint8))}
    for count, said in OUT_OF_SCALE.items():
        counts[flat.isnan() if math.isnan(said) else flat == said] = count
    places = (counts + 2**23)[:, None] >> torch.tensor([0, 8, 16])
    return {"shape": list(values.shape), "unit": unit, "packed": _text((places & 255).to(torch.uint8))}


def _text(held: torch.Tensor) -> str:
    return base64.b85encode(bytes(held.flatten().tolist())).decode()

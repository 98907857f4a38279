"""What is right on a telling case: every tensor of the solution and of the right answers, and the solution's steps."""

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from ..sandbox.inside.nesting import tensors_in
from ..sandbox.inside.tracing import Made, Run, Watch, made_ready, watched
from .telling_cases import TellingCase

TOLERANCE = 2e-5
_INFINITE = 1e6
"""Numbers further out are all as one: some hide a score by minus infinity, others by -1e9."""
_NAN = 12345678.0


@dataclass(frozen=True)
class Right:
    """One tensor of a right run."""

    values: torch.Tensor
    operator: str
    number: int | None = None
    """Its number in the solution's run; None in that of another right answer."""
    step: str = ""
    """What the solution calls it."""
    is_part: bool = False
    """Whether it is a slice of one that was made whole: of one head, or of one sequence."""


@dataclass
class Reference:
    """What is known to be right of one telling case."""

    case: TellingCase
    result: list[torch.Tensor]
    rights: list[Right]
    before: dict[int, frozenset[int]]
    """What each tensor of the solution's run was made of, and that of, to the beginning."""
    inputs: dict[int, list[int]]
    """What each tensor of the solution's run was made of, as far as it tells anything."""
    scaled: list[torch.Tensor]
    """What the solution scales later, scaled already."""
    _by_shape: dict[tuple[int, ...], tuple[torch.Tensor, list[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shapes: dict[tuple[int, ...], list[int]] = {}
        for number, right in enumerate(self.rights):
            shapes.setdefault(_squeezed(right.values.shape), []).append(number)
        for shape, numbers in shapes.items():
            self._by_shape[shape] = torch.stack([comparable(self.rights[n].values).flatten() for n in numbers]), numbers

    def known(self, values: torch.Tensor) -> list[int]:
        """Which of the right ones have exactly these numbers in these places."""
        stacked, numbers = self._by_shape.get(_squeezed(values.shape), (None, []))
        if stacked is None:
            return []
        one = comparable(values).flatten()
        close = ((stacked - one).abs() <= TOLERANCE * (1 + one.abs())).all(dim=1)
        return [number for number, is_close in zip(numbers, close.tolist(), strict=True) if is_close]

    def is_scaled(self, values: torch.Tensor) -> bool:
        """Whether it is something right times a number that the solution multiplies with later."""
        squeezed = values.squeeze()
        return any(one.shape == squeezed.shape and same(one, squeezed) for one in self.scaled)

    def is_right(self, run: Run) -> bool:
        """Whether a run ended with the right result."""
        if run.error is not None:
            return False
        found = list(tensors_in(run.result))
        return len(found) == len(self.result) and all(
            one.shape == other.shape and not one.is_complex() and same(one, other)
            for one, other in zip(found, self.result, strict=True)
        )


def reference(case: TellingCase, solution: Any, others: Iterable[Any]) -> Reference | None:
    """What is right on this case; None where the solution makes no tensors. others: right answers."""
    run, names = _watched_solution(solution, case)
    result = [one.detach().double() for one in tensors_in(run.result)]
    if run.error is not None or not result:
        return None
    own = [Right(made.values, made.operator, n, names.get(n, "")) for n, made in enumerate(run.made)]
    rights = [*own]
    for answer in others:
        rights += [Right(made.values, made.operator) for made in _made_by(answer, case)]
    rights = _distinct([*rights, *_by_hand(run.made)])
    given = [arg for arg in case.arguments if isinstance(arg, torch.Tensor)] + list((case.parameters or {}).values())
    rights += [Right(one.double(), "given") for one in given]
    before = all_before(run.made)
    everything = _distinct([*rights, *_parts(rights)])
    return Reference(case, result, everything, before, _inputs(own, run.made, everything), _scaled(own, given, before))


def comparable(values: torch.Tensor) -> torch.Tensor:
    """The numbers as they are compared: whatever stands for infinity is one number."""
    return values.double().clamp(-_INFINITE, _INFINITE).nan_to_num(_NAN)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of as many numbers have the same ones."""
    first, second = comparable(one.detach()).flatten(), comparable(other.detach()).flatten()
    return bool(((first - second).abs() <= TOLERANCE * (1 + second.abs())).all())


def _in_float64(case: TellingCase) -> tuple[tuple[Any, ...], Mapping[str, torch.Tensor] | None]:
    arguments = tuple(_double(arg) for arg in case.arguments)
    return arguments, case.parameters and {name: one.double() for name, one in case.parameters.items()}


def _double(arg: Any) -> Any:
    return arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg


def _made_by(answer: Any, case: TellingCase) -> list[Made]:
    file = inspect.getsourcefile(inspect.unwrap(answer)) or ""
    arguments, parameters = _in_float64(case)
    run = watched(made_ready(answer, case.built, parameters, arguments), Watch(lambda name: name == file, {}))
    return [] if run.error is not None else run.made


def _watched_solution(solution: Any, case: TellingCase) -> tuple[Run, dict[int, str]]:
    """The solution's run, and the names of its own variables for the tensors in it."""
    file = inspect.getsourcefile(solution) or ""
    watch, names = Watch(lambda name: name == file, {}), dict[int, str]()

    def look(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        for name, value in frame.f_locals.items():
            if id(value) in watch.of and isinstance(value, torch.Tensor):
                names.setdefault(watch.of[id(value)], name)
        return look

    arguments, parameters = _in_float64(case)
    before = sys.gettrace()
    sys.settrace(look)
    try:
        run = watched(made_ready(solution, case.built, parameters, arguments), watch)
    finally:
        sys.settrace(before)
    return run, names


def _distinct(rights: Iterable[Right]) -> list[Right]:
    """Each tensor once, of the solution's run where it is there, and with a name where it has one.

    Two that differ in the last of the digits compared may both stay.
    """
    found: dict[tuple[tuple[int, ...], bytes], Right] = {}
    for right in rights:
        if right.values.numel():
            digits = comparable(right.values).round(decimals=4) + 0.0  # of minus zero: zero
            key = tuple(right.values.shape), digits.numpy().tobytes()
            if key not in found or (right.step and not found[key].step):
                found[key] = right
    return list(found.values())


def _inputs(own: list[Right], made: Sequence[Made], kept: list[Right]) -> dict[int, list[int]]:
    """The inputs of each tensor that are kept, and no masks or single numbers."""
    numbers = {right.number for right in kept}
    return {
        number: [n for n in one.inputs if n in numbers and own[n].values.numel() > 1 and not is_mask(own[n].values)]
        for number, one in enumerate(made)
    }


def _by_hand(made: Sequence[Made]) -> list[Right]:
    """What a softmax is made of, where one is written out."""
    found: list[Right] = []
    for one in made:
        if one.operator != "_softmax" or not one.inputs:
            continue
        scores = made[one.inputs[0]].values
        if scores.shape != one.values.shape:
            continue
        for shifted in (scores, scores - scores.amax(dim=-1, keepdim=True)):
            exponentials = shifted.exp()
            if bool(exponentials.isinf().any()):
                continue
            found += [
                Right(shifted, "sub"),
                Right(exponentials, "exp"),
                Right(exponentials.sum(dim=-1, keepdim=True), "sum"),
            ]
    return found


def _scaled(own: list[Right], given: list[torch.Tensor], before: dict[int, frozenset[int]]) -> list[torch.Tensor]:
    """What the solution comes to scale, multiplied before that by the same number, or by its root."""
    found: list[torch.Tensor] = []
    for one in own:
        assert one.number is not None
        for earlier in before[one.number]:
            factor = _factor(own[earlier].values, one.values)
            if factor is None or not 0 < factor < 1:
                continue
            sources = [own[n].values for n in before[one.number]] + [one.double() for one in given]
            found += [
                source.squeeze() * by
                for source in sources
                for by in (factor, factor**0.5)
                if source.numel() > 1 and not bool((source == source.round()).all())
            ]
    return found


def _factor(one: torch.Tensor, other: torch.Tensor) -> float | None:
    """The number that this tensor was multiplied with to make the other."""
    if one.shape != other.shape or one.numel() < 2 or bool((one == one.flatten()[0]).all()):
        return None
    finite = one.isfinite() & (one != 0)
    ratio = (other / one)[finite]
    if not len(ratio) or not same(ratio, ratio[0].expand_as(ratio)):
        return None
    return float(ratio[0])


def _parts(rights: list[Right]) -> list[Right]:
    """One head's, one sequence's and one token's share of what is right."""
    parts: list[Right] = []
    for right in rights:
        for values in _slices(right.values):
            parts.append(Right(values, right.operator, is_part=True))
    return parts


def _slices(values: torch.Tensor, first: int = 0, depth: int = 2) -> Iterable[torch.Tensor]:
    for dim in range(first, values.dim() - 1) if depth else ():
        for index in range(values.shape[dim] if values.shape[dim] > 1 else 0):
            one = values.select(dim, index)
            yield one
            yield from _slices(one, dim, depth - 1)


def all_before(made: Sequence[Made]) -> dict[int, frozenset[int]]:
    before: dict[int, frozenset[int]] = {}
    for number, one in enumerate(made):
        before[number] = frozenset(one.inputs).union(*(before[other] for other in one.inputs if other < number))
    return before


def is_mask(values: torch.Tensor) -> bool:
    """Whether there are but two numbers in it, one of them nothing."""
    if values.numel() < 2 or values.dim() < 2:
        return False
    found = comparable(values).unique()
    return len(found) == 2 and bool((found == 0).any())


def sorted_sizes(values: torch.Tensor) -> tuple[int, ...]:
    """The sizes other than 1, in order."""
    return tuple(sorted(size for size in values.shape if size != 1))


def _squeezed(shape: Iterable[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)

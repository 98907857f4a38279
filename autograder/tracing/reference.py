"""What is known to be right on a telling case: tensors, and the solution's names for some of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run, TracedTensor

TOLERANCE = 2e-5
_INFINITE = 1e6
"""Numbers further out are all as one: some hide a score by minus infinity, others by -1e9."""
LARGE = 1e5
"""Further out than any number that is computed: it stands for infinity."""
_NAN = 12345678.0


@dataclass(frozen=True)
class TraceCase:
    """A call of an answer that is traced."""

    exercise: str
    arguments: tuple[Any, ...]
    built: tuple[Any, ...] | None = None
    """What an instance is built with, where a class is asked for."""
    parameters: Mapping[str, torch.Tensor] | None = None
    """The numbers that it gets then."""
    rules: Mapping[str, Mapping[str, Any]] | None = None
    """How these are written down in short, by the rules that make them."""
    through: tuple[str, ...] = ()
    """Of an instance that is not called itself: what `fed` calls in its place."""
    is_silent: bool = False
    """Whether no line is looked for where values are wrong, but only where it loses what is asked beside them."""
    untold: frozenset[str] = frozenset()
    """In which ways that `Located.how` has no line is told, because too often it would be a wrong one."""


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

    @cached_property
    def is_mask(self) -> bool:
        """As `is_mask` says of its numbers."""
        return is_mask(self.values)


@dataclass
class Reference:
    """What is known to be right of one telling case."""

    case: TraceCase
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
            shapes.setdefault(without_ones(right.values.shape), []).append(number)
        for shape, numbers in shapes.items():
            stacked = torch.stack([self.rights[number].values.double().flatten() for number in numbers])
            self._by_shape[shape] = comparable(stacked), numbers

    @cached_property
    def lengths(self) -> list[int]:
        """How many rows what is right can have."""
        return sorted({size for right in self.rights for size in right.values.shape[:1]})

    @cached_property
    def hidden(self) -> list[torch.Tensor]:
        """The places that a mask hides: of masks, and of what has nothing, or minus infinity, in some places."""
        found = list[torch.Tensor]()
        for right in self.rights:
            if right.is_part or right.values.dim() < 2:
                continue
            values = right.values.squeeze()
            for hidden in (values != 0,) if is_mask(values) else (values == 0, values <= -LARGE):
                is_new = not any(torch.equal(one, hidden) for one in found)
                if is_new and bool(hidden.any()) and not bool(hidden.all()):
                    found.append(hidden)
        return found

    def known(self, values: torch.Tensor) -> list[int]:
        """Which of the right ones have exactly these numbers in these places."""
        stacked, numbers = self._by_shape.get(without_ones(values.shape), (None, []))
        if stacked is None:
            return []
        one = comparable(values).flatten()
        close = ((stacked - one).abs() <= TOLERANCE * (1 + one.abs())).all(dim=1)
        return [number for number, is_close in zip(numbers, close.tolist(), strict=True) if is_close]

    def has_shape(self, shape: Iterable[int]) -> bool:
        """Whether something right has this shape, but for dimensions of size 1."""
        return without_ones(shape) in self._by_shape

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


def comparable(values: torch.Tensor) -> torch.Tensor:
    """The numbers as they are compared: whatever stands for infinity is one number."""
    return values.double().clamp(-_INFINITE, _INFINITE).nan_to_num(_NAN)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of as many numbers have the same ones."""
    first, second = comparable(one.detach()).flatten(), comparable(other.detach()).flatten()
    return bool(((first - second).abs() <= TOLERANCE * (1 + second.abs())).all())


def distinct(rights: Iterable[Right]) -> list[Right]:
    """Each tensor once, of the solution's run where it is there, and with a name where it has one.

    Two that differ in the last of the digits compared may both stay.
    """
    found: dict[tuple[torch.Size, bytes], Right] = {}
    known = [right for right in rights if right.values.numel()]
    by_shape: dict[torch.Size, list[torch.Tensor]] = {}
    for right in known:
        by_shape.setdefault(right.values.shape, []).append(right.values.double())
    digits = {  # of minus zero: zero
        shape: iter(comparable(torch.stack(values)).round(decimals=4).add(0.0).numpy())
        for shape, values in by_shape.items()
    }
    for right in known:
        key = right.values.shape, next(digits[right.values.shape]).tobytes()
        if key not in found or (right.step and not found[key].step):
            found[key] = right
    return list(found.values())


def parts_of(rights: list[Right]) -> list[Right]:
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


def all_before(made: Sequence[TracedTensor]) -> dict[int, frozenset[int]]:
    """What each tensor of a run was made of, and that of, to the beginning."""
    before: dict[int, frozenset[int]] = {}
    for number, one in enumerate(made):
        before[number] = frozenset(one.inputs).union(*(before[other] for other in one.inputs if other < number))
    return before


def alone_fits(needed: torch.Tensor, made: torch.Tensor) -> bool:
    """Whether no other numbers would do as well: what a softmax takes may be hidden later, and large ones shifted."""
    return not bool((needed.abs() > LARGE).any()) or bool((made.isinf() & needed.isinf()).any())


def is_mask(values: torch.Tensor) -> bool:
    """Whether there are but two numbers in it, one of them nothing."""
    if values.numel() < 2 or values.dim() < 2:
        return False
    found = comparable(values).unique()
    return len(found) == 2 and bool((found == 0).any())


def without_ones(shape: Iterable[int]) -> tuple[int, ...]:
    """A shape but for the dimensions of size 1."""
    return tuple(size for size in shape if size != 1)

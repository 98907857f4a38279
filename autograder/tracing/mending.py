"""Runs an answer again with something right in the place of what it made, and sees whether it comes right."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run, TracedTensor
from .reference import Reference, same
from .replacing import Replacement, replacements
from .standing import Standing

MAX_RUNS = 120
"""Of one answer, all attempts together."""
_MAX_FIRST = 16
"""Attempts at what is replaced first, where one alone does not do."""

Again = Callable[[Mapping[int, torch.Tensor]], Run]
"""Runs the answer once more, with some of the tensors that it makes replaced."""


@dataclass(frozen=True)
class Mended:
    """A replacement with which the run came right."""

    by: Replacement
    proven: frozenset[int]
    """What is right because it went into the right result."""
    is_last: bool
    """Whether it was the result itself that was put in: that proves nothing of what came before."""
    made: Sequence[TracedTensor]
    """What the run made that came right."""


class Mending:
    """The attempts on one answer."""

    def __init__(self, reference: Reference, run: Run, standing: Standing, again: Again) -> None:
        self._reference = reference
        self._run = run
        self._standing = standing
        self._again = again
        self._left = MAX_RUNS

    @property
    def is_over(self) -> bool:
        """Whether there were too many attempts to say what the others would have come to."""
        return self._left <= 0

    def at(self, number: int) -> Mended | None:
        """What makes the run right in the place of this tensor; of one made in a loop, in that of all of them."""
        for one in replacements(self._reference, self._standing, number):
            run = self._attempt(one.replaced)
            if run is None:
                return None
            if self._reference.is_right(run):
                return Mended(one, *self._flow(run, one), run.made)
        return None

    def comes_right(self, replaced: Mapping[int, torch.Tensor]) -> bool:
        """Whether the run does, with these in their places."""
        run = self._attempt(replaced)
        return run is not None and self._reference.is_right(run)

    def at_first(self, numbers: Iterable[int]) -> Replacement | None:
        """What has to be replaced at one of these before something later is, for the run to come right.

        The lines between the two must make something right of it.
        """
        attempts = 0
        for number in numbers:
            for one in replacements(self._reference, self._standing, number):
                attempts += 1
                run = self._attempt(one.replaced)
                if run is None or attempts > _MAX_FIRST:
                    return None
                if run.error is None and self._comes_right_later(run, one):
                    return one
        return None

    def _comes_right_later(self, run: Run, first: Replacement) -> bool:
        standing = Standing(self._reference, run.made)
        if not any(self._is_newly_right(number, standing, first) for number in range(first.number + 1, len(run.made))):
            return False
        for number in range(first.number + 1, len(run.made)):
            if not standing.is_unknown(number) or first.number not in standing.before[number]:
                continue
            for one in replacements(self._reference, standing, number):
                again = self._attempt({**first.replaced, **one.replaced})
                if again is None:
                    return False
                if self._reference.is_right(again):
                    return True
        return False

    def _is_newly_right(self, number: int, standing: Standing, first: Replacement) -> bool:
        made = standing.made[number]
        if not standing.known[number] or standing.neutral[number] or standing.mask[number]:
            return False
        if standing.is_shaping(number) or first.number not in standing.before[number]:
            return False
        is_new = number >= len(self._run.made) or not self._standing.known[number]
        return is_new and made.line != self._run.made[first.number].line

    def _attempt(self, replaced: Mapping[int, torch.Tensor]) -> Run | None:
        if self._left <= 0:
            return None
        self._left -= 1
        return self._again(replaced)

    def _flow(self, run: Run, by: Replacement) -> tuple[frozenset[int], bool]:
        """What the right result of a run was made of, beside what was put in; and whether that alone is the result."""
        pending = made_last(run)
        is_last = any(number in by.replaced for number in pending)
        proven = set[int]()
        while pending:
            number = pending.pop()
            if number not in by.replaced and number not in proven:
                proven.add(number)
                pending += run.made[number].inputs
        before = self._run.made
        is_same = [
            (one.line, one.place) == (other.line, other.place) for one, other in zip(run.made, before, strict=False)
        ]
        return frozenset(one for one in proven if one < len(is_same) and is_same[one]), is_last


def made_last(run: Run) -> list[int]:
    """The tensors that have the numbers of the result."""
    results = list(tensors_in(run.result))
    return [
        number
        for number, made in enumerate(run.made)
        if any(one.shape == made.values.shape and same(one, made.values) for one in results)
    ]

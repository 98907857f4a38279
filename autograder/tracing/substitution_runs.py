"""Run an answer again with some of its tensors replaced, until the result is right."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run, TracedTensor
from .reference import has_same_values
from .substitutions import Substitution, substitutions
from .tensor_status import TensorStatus

_MAX_RUNS = 120
"""Maximum number of runs of one answer."""
_MAX_FIRST = 16
"""Maximum number of substitutions for the first of two wrong lines."""

Rerun = Callable[[Mapping[int, torch.Tensor]], Run]
"""Runs the answer again. Its argument: new tensors by the numbers of those that they replace."""


@dataclass(frozen=True)
class Correction:
    """A substitution with which the result is right."""

    substitution: Substitution
    proven: frozenset[int]
    """The tensors that went into the right result: they are right."""
    is_result: bool
    """True if the result itself was replaced, which proves nothing about earlier tensors."""
    made: Sequence[TracedTensor]
    """The tensors of the corrected run."""


class SubstitutionRuns:
    """The runs of one answer with substitutions. Their number is limited."""

    def __init__(self, status: TensorStatus, run: Run, rerun: Rerun) -> None:
        self._status = status
        self._reference = status.reference
        self._run = run
        self._rerun = rerun
        self._runs_left = _MAX_RUNS

    @property
    def is_exhausted(self) -> bool:
        """True if the limit was reached, so that later tensors may not have been tried."""
        return self._runs_left <= 0

    def correct(self, number: int) -> Correction | None:
        """Return a substitution for this tensor with which the result is right; None if none is found.

        A tensor made in a loop is replaced in all iterations.
        """
        for substitution in substitutions(self._status, number):
            run = self._run_with(substitution.replaced)
            if run is None:
                return None
            if self._reference.is_right(run):
                return self._correction(substitution, run)
        return None

    def is_corrected_by(self, replaced: Mapping[int, torch.Tensor]) -> bool:
        """Return whether the result is right with these tensors replaced."""
        run = self._run_with(replaced)
        return run is not None and self._reference.is_right(run)

    def first_of_two(self, numbers: Iterable[int]) -> Substitution | None:
        """Return a substitution for one of these tensors that needs another one, on a later line, to correct the run.

        A line between the two must make a right tensor from the first.
        """
        candidates = chain.from_iterable(substitutions(self._status, number) for number in numbers)
        for attempt, substitution in enumerate(candidates):
            run = self._run_with(substitution.replaced)
            if run is None or attempt >= _MAX_FIRST:
                return None
            if run.error is None and self._is_corrected_later(run, substitution):
                return substitution
        return None

    def _is_corrected_later(self, run: Run, first: Substitution) -> bool:
        status = TensorStatus(self._reference, run.made)
        descendants = [n for n in range(first.number + 1, len(run.made)) if first.number in status.ancestors[n]]
        if not any(self._is_newly_right(number, status, first) for number in descendants):
            return False
        for substitution in chain.from_iterable(
            substitutions(status, n) for n in filter(status.is_unknown, descendants)
        ):
            both = self._run_with({**first.replaced, **substitution.replaced})
            if both is None:
                return False
            if self._reference.is_right(both):
                return True
        return False

    def _is_newly_right(self, number: int, status: TensorStatus, first: Substitution) -> bool:
        """Return whether a computed tensor on another line matches only since the substitution."""
        if not status.matches[number] or status.is_trivial[number] or status.is_mask[number]:
            return False
        is_new = number >= len(self._run.made) or not self._status.matches[number]
        is_elsewhere = status.made[number].line != self._run.made[first.number].line
        return is_new and is_elsewhere and not status.is_reshaped(number)

    def _run_with(self, replaced: Mapping[int, torch.Tensor]) -> Run | None:
        if self.is_exhausted:
            return None
        self._runs_left -= 1
        return self._rerun(replaced)

    def _correction(self, substitution: Substitution, run: Run) -> Correction:
        replaced, pending = substitution.replaced, result_tensors(run)
        is_result = any(number in replaced for number in pending)
        used = set[int]()
        while pending:
            number = pending.pop()
            if number not in replaced and number not in used:
                used.add(number)
                pending += run.made[number].inputs
        # With a substitution the code may take another branch: then numbers stand for other tensors.
        pairs = zip(run.made, self._run.made, strict=False)
        same = {n for n, (new, old) in enumerate(pairs) if (new.line, new.place) == (old.line, old.place)}
        return Correction(substitution, frozenset(used & same), is_result, run.made)


def result_tensors(run: Run) -> list[int]:
    """Return the numbers of the tensors with the shape and values of a result."""
    results = list(tensors_in(run.result))
    return [
        number
        for number, made in enumerate(run.made)
        if any(result.shape == made.values.shape and has_same_values(result, made.values) for result in results)
    ]

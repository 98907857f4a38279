"""Whether what is returned is itself the fault, because nothing speaks against what it was made of."""

from itertools import combinations

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run
from .located import Located, Telling
from .mending import made_last
from .reference import Reference, is_mask, same
from .standing import Standing


class Returned:
    """What a run returns, beside what it should."""

    def __init__(self, reference: Reference, run: Run, standing: Standing, telling: Telling) -> None:
        self._reference = reference
        self._run = run
        self._made = run.made
        self._standing = standing
        self._telling = telling

    def of_another_kind(self) -> Located | None:
        """Where what is returned is not as many tensors as it should be, and nothing speaks against what was made."""
        results = list(tensors_in(self._run.result))
        if self._run.error is not None or self._run.returned is None or len(results) == len(self._reference.result):
            return None
        file, line = self._run.returned
        doubtful = {one.line for number, one in enumerate(self._made) if self._standing.may_be_wrong(number)}
        if results and doubtful - {line}:
            return None
        first = results[0].detach() if results else None
        return self._telling.located(
            [line], file, len(self._made), "of another kind", first,
            results=len(results), wanted=len(self._reference.result),
        )  # fmt: skip

    def too_early(self) -> Located | None:
        """Where what is returned is right as far as it goes, or has nothing of the arguments in it."""
        results = list(tensors_in(self._run.result))
        if self._run.error is not None or self._run.returned is None or len(results) != len(self._reference.result):
            return None
        standing, last = self._standing, made_last(self._run)
        behind = set(last).union(*(standing.before[number] for number in last))
        if any(standing.may_be_wrong(number) for number in behind):
            return None
        if any(standing.is_only_a_part(number) for number in behind.difference(last)):
            return None
        if any(map(self._adds_up, behind)) or self._is_one_result_twice(results):
            return None
        for one, right in zip(results, self._reference.result, strict=True):
            if one.shape == right.shape and same(one, right):
                continue
            if (
                is_mask(one)
                or self._is_an_argument(one, behind)
                or not (self._reference.known(one) or (behind and all(map(standing.is_new, behind))))
            ):
                return None
            file, line = self._run.returned
            return self._telling.located([line], file, len(self._made), "returned", one, right)
        return None

    def _adds_up(self, number: int) -> bool:
        """Whether it is made in a loop, of what an earlier turn made: then a turn may be missing."""
        standing = self._standing
        return not standing.is_shaping(number) and any(one in standing.before[number] for one in standing.turns(number))

    def _is_one_result_twice(self, results: list[torch.Tensor]) -> bool:
        """Whether two results are alike that should not be: then one was made wrong, before it is returned."""
        found = [set(self._reference.known(one)) for one in results]
        return any(one & other for one, other in combinations(found, 2))

    def _is_an_argument(self, one: torch.Tensor, behind: set[int]) -> bool:
        """Whether it is what went in, though more than one line worked on it."""
        is_given = any(self._reference.rights[n].operator == "given" for n in self._reference.known(one))
        return is_given and len({self._made[number].line for number in behind}) > 1

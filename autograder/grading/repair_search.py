"""Search for a repair: an edit of a student's code that makes all hidden tests pass.

Example: an answer divides by `d_k`, and fails. Candidate edits of it are tried one after another in a worker; for each,
hidden tests run until one fails. With the edit to `d_k ** 0.5`, all pass. Then the edit is made in the notebook's cell,
and the exercise is graded as if the student had submitted that. Only edits that this confirms are reported.

The CPU time of a submission's search is limited, in this process and its workers together.
"""

import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, compress
from typing import TypeVar

import torch

from .. import catalogue
from ..core.edit_trials import Redefine, TryEdits, equal_fingerprints
from ..core.observation import StudentFault
from ..core.operations import (
    Assemble,
    Build,
    Call,
    KindOf,
    LoadParameters,
    ManualSeed,
    NamedParameters,
    Read,
    ToDtype,
    Train,
)
from ..graders.budget import OutOfBudget
from ..graders.collection import Verdict
from ..sandbox.client import Crashed, TimedOut
from ..tracing.definitions import CodeView, Definition, Edit
from ..tracing.repair_operators import generic_edits
from .examiner import RightResults
from .inverses import Inverse, inverse_edits, inverses
from .unexplained_answer import Repaired, Step, UnexplainedAnswer, total_rank

MAX_SECONDS = 15.0
"""Limit in CPU seconds for one submission."""
MAX_EXERCISE_SECONDS = 5.0
"""Limit in CPU seconds for one exercise."""
MAX_WALL_SECONDS = 40.0
"""Limit in wall seconds for one exercise, for code that waits and for very busy machines."""
T = TypeVar("T")
MOST_LIKELY = 500
"""Number of edits in the first group that is tried; more if more edits have a rank below `LIKELY`."""
MOST_SLOW = 150
"""Most edits that are tried if no failed test is quick."""
MOST_VERIFIED = 6
"""Most edited answers that are graded like submissions."""
MOST_PAIRED = 50
"""Most edits that are combined in pairs; each has other results."""
MOST_PAIRED_TEXT = 160_000
"""Most characters of code in all pairs that are tried. Longer code takes longer to compile and to run."""
MOST_SUSPECTED_TEXT = 80_000
"""Most characters of code in all unlikely edits of suspected lines that are tried."""
MOST_UNLIKELY_TEXT = 30_000
"""Most characters of code in all other unlikely edits that are tried."""
MOST_FURTHER_TEXT = 30_000
"""Most characters of code in all edits that are tried on further failed tests."""
MOST_SECOND_TEXT = 120_000
"""Most characters of code in all second edits after one edit."""
MOST_PARTIAL = 3
"""Most edits to which a second edit is added because some more tests pass with them."""
LIKELY = 2
"""Largest rank of a likely edit. Less likely edits are tried after pairs of likely ones."""
BATCH = 40
"""Number of edits that are sent to the worker in one request."""
MOST_QUICK = 3
"""Most failed tests for which edits are tried by fingerprints, without running the test."""
QUICK = (KindOf, ManualSeed, Build, Call, Read, NamedParameters, LoadParameters, ToDtype, Train, Assemble)
"""Operations of a quick test: each takes about as long as the student's code itself."""


class RepairTime:
    """The time that the search for one submission's repairs has left."""

    def __init__(self, worker_seconds: Callable[[], float]) -> None:
        """worker_seconds: returns the CPU seconds of all workers so far."""
        self._worker_seconds = worker_seconds
        self._end = self._now() + MAX_SECONDS
        self.begin_exercise()

    def begin_exercise(self) -> None:
        """Begin with the next exercise, which then has its own limits of time."""
        self._exercise_end = min(self._now() + MAX_EXERCISE_SECONDS, self._end)
        self._wall_end = time.monotonic() + MAX_WALL_SECONDS

    @property
    def is_over(self) -> bool:
        """True if the current exercise or the submission has no time left."""
        return self._now() > self._exercise_end or time.monotonic() > self._wall_end

    @property
    def is_half_over(self) -> bool:
        """True if half of the current exercise's time is used up."""
        return self._now() > self._exercise_end - MAX_EXERCISE_SECONDS / 2 or self.is_over

    @property
    def is_short(self) -> bool:
        """True if the current exercise has less than the usual time, because earlier ones used the submission's."""
        return self._exercise_end >= self._end

    def _now(self) -> float:
        return time.thread_time() + self._worker_seconds()


@dataclass(frozen=True)
class _Attempt:
    """An answer with some edits, and the names of the failed tests that pass with them."""

    parts: tuple[Definition, ...]
    steps: tuple[Step, ...] = ()
    passed: frozenset[str] = frozenset()

    def edits(self, known: Sequence[Inverse], suspected: Set[int]) -> list[Step]:
        """Return the possible further edits, the likeliest first. suspected: lines whose edits are likelier."""
        steps: list[Step] = []
        for part in self.parts:
            inverse = inverse_edits(part, known)
            spans = {edit.spans for edit in inverse}
            edits = [*inverse, *(edit for edit in generic_edits(part) if edit.spans not in spans)]
            steps += [Step(part, edit) for edit in edits]
        return sorted(steps, key=lambda step: step.edit.rank - 2 * step.is_in(suspected))

    def within(self, characters: int, edits: Sequence[T]) -> Sequence[T]:
        """Return the first of these edits of the attempt, whose edited texts together have this many characters."""
        return edits[: characters // sum(len(part.text) for part in self.parts)]

    def after(self, step: Step) -> "_Attempt":
        new = step.definition.edited(step.edit)
        return _Attempt(tuple(new if part == step.definition else part for part in self.parts), (*self.steps, step))

    @property
    def rank(self) -> int:
        return total_rank(self.steps)

    @property
    def is_on_one_line(self) -> bool:
        """True if all edits change the same lines. Two mistakes are more often on two lines."""
        return len({(step.definition.name, *step.lines) for step in self.steps}) == 1


def find_repairs(answer: UnexplainedAnswer, suspected: Set[int], time: RepairTime) -> list[Repaired]:
    """Return the repairs of an answer, the likeliest first; empty if the answer passes or no repair is found.

    suspected: lines of the cell whose edits are tried earlier. Raises SandboxLost.
    """
    with closing(_Search(answer, suspected, time)) as search:
        return search.found()


@cache
def _known_inverses(unit: str, exercise: str) -> list[Inverse]:
    """Return the inverses of the exercise's misconceptions."""
    return inverses(one for one in catalogue.misconceptions(unit).values() if one.exercise == exercise)


class _Search:
    def __init__(self, answer: UnexplainedAnswer, suspected: Set[int], time: RepairTime) -> None:
        self._answer, self._examiner = answer, answer.examiner
        self._names = answer.unit.name, answer.exercise.name
        self._others = [one.name for one in answer.unit.exercises]
        self._suspected = suspected
        self._code = answer.start(answer.cells, is_alone=True)
        self._time = time
        self._tried: list[tuple[Step, torch.Tensor]] = []
        """The edits that were tried on the quickest failed test, with the fingerprints of their results."""
        self._known = _known_inverses(*self._names)
        self._is_spent = False
        """True if the worker's own limits of time are used up."""

    def close(self) -> None:
        self._code.close()

    def found(self) -> list[Repaired]:
        parts = self._answer.definitions(without=self._others)
        if not parts:
            return []
        self._code.run_cells()
        self._code.begin_exercise(self._answer.exercise.name)
        verdicts = list(self._verdicts(self._examiner.tests(*self._names)))
        failed = [one for one in verdicts if one.outcome == "failed" and one.test.points]
        if not failed or any(one.lost or one.missing for one in failed):
            return []
        self._passed = [one.test.name for one in verdicts if one.outcome == "passed"]
        unchanged = _Attempt(tuple(parts))
        self._order_tests([one.test.name for one in failed], unchanged)
        self._time.begin_exercise()  # a search must not depend on what was graded before
        likely, others = self._edits(unchanged)
        if not self._quick:
            found, _ = self._search(unchanged, likely[:MOST_SLOW], ())
            return self._verified(found)
        own = self._prints([unchanged], self._quick[0])
        unreached = self._unreached(unchanged, self._quick[0])
        likely_reached = [one for one in likely if not one.is_within(unreached)]
        others = [one for one in others if not one.is_within(unreached)]
        found, _ = self._search(unchanged, likely_reached, self._quick[:1])
        if found:
            return self._verified(found)
        if own is not None:
            same, changing = self._distinct(own[0])
            same += [step for step in likely if step.is_within(unreached)]
            likely = sorted([*same, *changing], key=lambda step: step.edit.rank)
            if found := self._verified(self._pairs(unchanged, changing[:MOST_PAIRED])):
                return found
        on_suspected = [step for step in others if step.is_in(self._suspected)]
        elsewhere = [step for step in others if not step.is_in(self._suspected)]
        unlikely = [
            *unchanged.within(MOST_SUSPECTED_TEXT, on_suspected),
            *unchanged.within(MOST_UNLIKELY_TEXT, elsewhere),
        ]
        if found := self._verified(self._search(unchanged, unlikely, self._quick[:1])[0]):
            return found
        if len(failed) == 1:
            return []
        _, partial = self._search(unchanged, unchanged.within(MOST_FURTHER_TEXT, likely), self._quick, is_partial=True)
        partial.sort(key=lambda attempt: (-len(attempt.passed), attempt.rank))
        return self._verified(self._beam(partial))

    def _edits(self, unchanged: _Attempt) -> tuple[list[Step], list[Step]]:
        """Return the edits to try first, and the others."""
        steps = unchanged.edits(self._known, self._suspected)
        first = max(MOST_LIKELY, sum(step.edit.rank < LIKELY for step in steps))
        likely, others = list[Step](), list[Step]()
        for number, step in enumerate(steps):
            (likely if number < first and step.edit.rank <= LIKELY else others).append(step)
        return likely, others

    def _unreached(self, attempt: _Attempt, quick: RightResults) -> list[Step]:
        """Return edits of statements that a test does not reach: to raise an exception there changes no result.

        Example: an answer raises an exception in its third line. Then edits after this line cannot repair it.
        """
        steps = [
            Step(part, Edit(((*part.span(block[position]), "raise SystemExit"),), "a statement", 0))
            for part in attempt.parts
            for block, position in CodeView(part).statements
            if not hasattr(block[position], "body")
        ]
        prints = self._prints([attempt, *(attempt.after(step) for step in steps)], quick)
        if prints is None:
            return []
        return list(compress(steps, equal_fingerprints(prints[1:], prints[0]).all(dim=-1)))

    def _order_tests(self, failed: Sequence[str], unchanged: _Attempt) -> None:
        """Sort the failed tests for the search: quick ones first, then by their number of operations.

        A test is not quick if the answer fails it with the solution's fingerprints, which then cannot exclude edits.
        """
        quick: dict[str, RightResults] = {}
        sizes: dict[str, int] = {}
        for name in failed:
            operations, prints = self._examiner.right_results(*self._names, name)
            sizes[name] = len(operations)
            if operations and all(type(one) in QUICK for one in operations):
                own = self._prints([unchanged], (operations, prints))
                if own is None or not equal_fingerprints(own[0], prints).all():
                    quick[name] = operations, prints
        self._failed = sorted(failed, key=lambda name: (name not in quick, sizes[name]))
        self._quick = [quick[name] for name in self._failed if name in quick][:MOST_QUICK]

    def _verified(self, found: Sequence[Repaired]) -> list[Repaired]:
        """Grade the first repairs, more than one only if time is left; return those that earn all points."""
        verified = []
        for number, one in enumerate(found[:MOST_VERIFIED]):
            if number and self._time.is_over:
                break
            if self._answer.is_repaired(one):
                verified.append(replace(one, steps=tuple(map(self._with_proven_names, one.steps))))
        return verified

    def _with_proven_names(self, step: Step) -> Step:
        """Return an edit with only those misconceptions that give the answer's own results in a failed test.

        An answer can contain a misconception's wrong expression and nevertheless do something else. Example: in
        `enumerate(sorted(words, key=str.casefold))`, words are not numbered by their places in the sentence.
        """
        if not step.edit.misconceptions:
            return step
        unedited = _Attempt(tuple(self._answer.definitions(without=self._others)))
        own = [(test[0], self._prints([unedited], test)) for test in self._quick]
        proven = frozenset(
            name
            for name in step.edit.misconceptions
            if any(
                prints is not None
                and bool(
                    equal_fingerprints(prints[0], self._examiner.prints_of(self._names[0], name, operations)).all()
                )
                for operations, prints in own
            )
        )
        return replace(step, edit=replace(step.edit, misconceptions=proven))

    def _prints(self, attempts: Sequence[_Attempt], quick: RightResults) -> torch.Tensor | None:
        """Return the fingerprints of all attempts' results, (attempt, operation, 3); None if the worker was lost."""
        operations, _ = quick
        variants = tuple(
            tuple((one.name, one.text, one.cell, one.first_line) for one in attempt.parts) for attempt in attempts
        )
        self._code.begin_trial()
        try:
            return self._code.ask(TryEdits(variants, operations))
        except OutOfBudget:
            self._is_spent = True
            return None
        except (StudentFault, TimedOut, Crashed):
            return None

    def _may_pass(self, attempts: Sequence[_Attempt], quick: Sequence[RightResults]) -> list[bool]:
        """Return, for each attempt, whether by its fingerprints it may pass one of the quick tests."""
        passing = torch.full((len(attempts),), not quick)
        for test in quick:
            prints = self._prints(attempts, test)
            if prints is None:
                return [not self._is_spent] * len(attempts)
            passing |= equal_fingerprints(prints, test[1]).all(dim=-1)
            if test is self._quick[0]:
                self._tried += [
                    (one.steps[0], each) for one, each in zip(attempts, prints, strict=True) if not one.steps[1:]
                ]
        return passing.tolist()

    def _distinct(self, own: torch.Tensor) -> tuple[list[Step], list[Step]]:
        """Return the tried edits that change no result of the quickest failed test, and those that do, likeliest first.

        Of edits with the same results, only one is returned. Edits with which fewer operations have a result are left
        out. own: fingerprints of the unedited answer on that test.
        """
        same, changing = list[Step](), dict[str, Step]()
        for step, prints in sorted(self._tried, key=lambda one: one[0].edit.rank):
            if _key(prints) == _key(own):
                same.append(step)
            elif _runs(prints) >= _runs(own):
                changing.setdefault(_key(prints), step)
        return same, list(changing.values())

    def _pairs(self, unchanged: _Attempt, steps: Sequence[Step]) -> list[Repaired]:
        """Return the first repair found that consists of two of these edits; empty if none is found."""
        both = [
            unchanged.after(one).after(Step(two.definition.edited(one.edit), two.edit.after(one.edit)))
            if one.definition is two.definition
            else unchanged.after(one).after(two)
            for one, two in combinations(steps, 2)
            if one.definition is not two.definition or one.edit.is_apart_from(two.edit)
        ]
        both.sort(key=lambda attempt: (attempt.rank, attempt.is_on_one_line))
        for some in _batched(unchanged.within(MOST_PAIRED_TEXT, both)):
            if self._time.is_half_over or self._is_spent:
                break
            may_pass = self._may_pass(some, self._quick[:1])
            for attempt in compress(some, may_pass):
                if self._passed_with(attempt.parts):
                    return [Repaired(attempt.steps)]
        return []

    def _beam(self, partial: Sequence[_Attempt]) -> list[Repaired]:
        """Return a repair by two edits: one of `partial`, with which more tests pass, and a second one; else empty."""
        for attempt in partial[:MOST_PARTIAL]:
            steps = attempt.within(MOST_SECOND_TEXT, attempt.edits(self._known, self._suspected))
            failing = [one for name, one in zip(self._failed, self._quick, strict=False) if name not in attempt.passed]
            if failing:
                unreached = self._unreached(attempt, failing[0])
                steps = [step for step in steps if not step.is_within(unreached)]
            found, _ = self._search(attempt, steps, (failing or self._quick)[:1])
            if found:
                return found[:1]
        return []

    def _search(
        self,
        attempt: _Attempt,
        steps: Sequence[Step],
        quick: Sequence[RightResults],
        *,
        is_partial: bool = False,
    ) -> tuple[list[Repaired], list[_Attempt]]:
        """Try edits of an attempt; return the repairs, and the edited attempts with which more failed tests pass.

        quick: run the hidden tests only for edits that may pass one of these. is_partial: return edited attempts.
        """
        found: list[Repaired] = []
        partial: list[_Attempt] = []
        for some in _batched(steps):
            if self._time.is_over or self._is_spent or (found and some[0].edit.rank > found[0].steps[-1].edit.rank + 1):
                break
            attempts = [attempt.after(step) for step in some]
            for new in compress(attempts, self._may_pass(attempts, quick)):
                passed = self._passed_with(new.parts, attempt.passed, tries_all=is_partial)
                if passed is not None and len(passed) == len(self._failed):
                    found.append(Repaired(new.steps))
                elif passed is not None and passed > attempt.passed:
                    partial.append(replace(new, passed=passed))
        return found, partial

    def _passed_with(
        self, parts: Sequence[Definition], last: Set[str] = frozenset(), *, tries_all: bool = False
    ) -> frozenset[str] | None:
        """Return the failed tests that pass with these definitions; None if a test fails that passed before.

        last: tests that likely pass, and so run last. tries_all: run all failed tests; otherwise return None if one of
        them fails again.
        """
        if self._is_spent:
            return None
        self._code.begin_trial()
        passed: set[str] = set()
        try:
            self._code.ask(Redefine(tuple((one.name, one.text, one.cell, one.first_line) for one in parts)))
            for verdict in self._verdicts(sorted(self._failed, key=last.__contains__)):
                if verdict.outcome == "passed":
                    passed.add(verdict.test.name)
                elif not tries_all:
                    return None
            if passed and any(verdict.outcome != "passed" for verdict in self._verdicts(self._passed)):
                return None
        except OutOfBudget:
            self._is_spent = True
            return None
        except (StudentFault, TimedOut, Crashed):
            return None
        return frozenset(passed)

    def _verdicts(self, names: Sequence[str]) -> Iterator[Verdict]:
        return self._examiner.verdicts(*self._names, self._code, names)


def _runs(prints: torch.Tensor) -> int:
    """Return the number of operations that have a result, by their fingerprints."""
    return int((prints[:, 0] > 0).sum())


def _key(prints: torch.Tensor) -> str:
    """Return fingerprints as text, rounded so that equal results have equal texts."""
    return " ".join(f"{number:.4g}" for number in prints.flatten().tolist())


def _batched(steps: Sequence[T]) -> Iterator[Sequence[T]]:
    """Return the steps in groups of BATCH."""
    return (steps[begin : begin + BATCH] for begin in range(0, len(steps), BATCH))

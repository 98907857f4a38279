"""Diagnose an answer by the tests that it fails: a misconception explains those in which the answer shows the same.

An answer may differ from a misconception where both are right, or have one more mistake. So only the tests that the
misconception fails are compared. In `divided_by_d_k` with one more mistake in dropout, seven of eight tests that
dividing by d_k fails show the same, number for number, and the eighth needs dropout.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..report import Diagnosis, Mistake
from .behaviour import Misconception
from .transcript import Trace, Transcript, are_equal_traces, whole, without_gradients

_LEAST_TESTS, _LEAST_SHARE = 5, 0.6
"""The tests, and their share, in which an answer must show the same as a misconception if it does not in all."""


@dataclass(frozen=True)
class _Explanation:
    misconception: Misconception
    tests: frozenset[str]
    """The hidden tests that the misconception fails and in which the answer shows the same."""
    others: frozenset[str]
    """The hidden tests that the misconception fails and in which the answer shows something else."""

    @property
    def sentence(self) -> str:
        return self.misconception.entry.sentence

    @property
    def is_sound(self) -> bool:
        agreed = len(self.tests)
        return not self.others or (agreed >= _LEAST_TESTS and agreed >= _LEAST_SHARE * (agreed + len(self.others)))

    def says_less_than(self, other: "_Explanation") -> bool:
        """Return whether another misconception explains the same tests and more, or fits them better."""
        return self.tests < other.tests or (self.tests == other.tests and len(self.others) > len(other.others))


def diagnose_by_tests(
    transcript: Transcript, misconceptions: Sequence[Misconception], advisory_tests: Collection[str]
) -> Diagnosis | None:
    """Return the one misconception, or the two, that explain the tests that an answer fails.

    The diagnosis is partial if other tests fail, too. None if nothing explains two tests, or if misconceptions with
    different sentences may explain the same test: one of them would be wrong. advisory_tests: those of weight 0.
    """
    shown = {trace.test: trace for trace in transcript if trace.test not in advisory_tests}
    failed = {trace.test for trace in shown.values() if trace.outcome == "failed"}
    every = list(_explanations(shown, misconceptions))
    sound = [one for one in every if one.is_sound]
    best = [one for one in sound if not any(map(one.says_less_than, sound))]

    def is_doubtful(one: _Explanation) -> bool:
        others = [other for other in every if other.sentence != one.sentence]
        # The answer may be one of these, with a second mistake that hides it in further tests.
        rivals = (other for other in others if one.tests <= other.tests and other.others <= failed)
        return any(rivals) or any(one.tests & other.tests for other in best if other in others)

    certain = [one for one in best if not is_doubtful(one)]
    by_sentence = {one.sentence: one for one in sorted(certain, key=lambda one: len(one.tests))}
    found = sorted(by_sentence.values(), key=lambda one: -len(one.tests))[:2]
    if frozenset[str]().union(*(one.tests for one in found)) != failed:
        found = [one for one in found if len(one.tests) > 1]
    if not found:
        return None
    first, *second = (one.misconception.entry for one in found)
    is_partial = frozenset[str]().union(*(one.tests for one in found)) != failed
    beside = Mistake(second[0].name, second[0].sentence) if second else None
    return Diagnosis(first.name, first.sentence, beside, is_partial)


def _explanations(shown: Mapping[str, Trace], misconceptions: Sequence[Misconception]) -> Iterator[_Explanation]:
    for one in misconceptions:
        first = next(iter(one.behaviour.transcript))  # it has run already, and leaves most out
        if first.outcome == "failed" and first.test in shown and not _shows_the_same(one, shown[first.test], first):
            continue
        test = one.entry.caught_by or ""
        if test not in shown or not _shows_the_same(one, shown[test], one.behaviour.trace(test)):
            continue  # to run one test for each misconception is quick
        wrong = [trace for trace in one.behaviour.transcript if trace.outcome == "failed" and trace.test in shown]
        alike = {trace.test for trace in wrong if _shows_the_same(one, shown[trace.test], trace)}
        yield _Explanation(one, frozenset(alike), frozenset(trace.test for trace in wrong) - alike)


def _shows_the_same(one: Misconception, answer: Trace, misconception: Trace) -> bool:
    """Return whether both fail a test alike; gradients of wrong values follow the way to them."""
    if answer.outcome != misconception.outcome:
        return False
    compared = whole if one.entry.kind == "gradient" else without_gradients
    return are_equal_traces(compared(answer), compared(misconception))

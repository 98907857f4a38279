"""Choose the misconceptions that explain the failed tests of an answer, in grading and in the student check.

A misconception explains a test if both fail it and the answer shows the same there. An answer may differ from a
misconception where both are right, or have one more mistake. So only the tests that the misconception fails are
compared.
"""

from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
_LEAST_TESTS, _LEAST_SHARE = 5, 0.6
"""The tests, and their share, in which an answer must show the same as a misconception if it does not in all."""


@dataclass(frozen=True)
class Explanation(Generic[T]):
    """A misconception, and the tests of the answer that it explains."""

    misconception: T
    sentence: Hashable
    """Equal for misconceptions that need not be distinguished."""
    tests: frozenset[Hashable]
    """The tests that the misconception fails and in which the answer shows the same."""
    others: frozenset[Hashable]
    """The tests that the misconception fails and in which the answer shows something else."""

    @property
    def is_sound(self) -> bool:
        """True if the answer shows the same in all tests that the misconception fails, or in most of many."""
        agreed = len(self.tests)
        return not self.others or (agreed >= _LEAST_TESTS and agreed >= _LEAST_SHARE * (agreed + len(self.others)))

    def says_less_than(self, other: "Explanation[T]") -> bool:
        """Return whether another misconception explains the same tests and more, or fits them better."""
        return self.tests < other.tests or (self.tests == other.tests and len(self.others) > len(other.others))


def explain(every: Sequence[Explanation[T]], failed: Set[Hashable]) -> list[Explanation[T]]:
    """Return the one explanation, or the two, of the tests that an answer fails; empty if nothing explains two tests.

    Empty also if misconceptions with different sentences may explain the same test: one of them would be wrong.
    every: the explanations by each misconception. failed: the tests that the answer fails.
    """
    sound = [one for one in every if one.is_sound and one.tests]
    best = [one for one in sound if not any(map(one.says_less_than, sound))]

    def is_doubtful(one: Explanation[T]) -> bool:
        others = [other for other in every if other.sentence != one.sentence]
        # The answer may be one of these, with a second mistake that hides it in further tests.
        rivals = (other for other in others if one.tests <= other.tests and other.others <= failed)
        return any(rivals) or any(one.tests & other.tests for other in best if other in others)

    certain = [one for one in best if not is_doubtful(one)]
    by_sentence = {one.sentence: one for one in sorted(certain, key=lambda one: len(one.tests))}
    found = sorted(by_sentence.values(), key=lambda one: -len(one.tests))[:2]
    if explained_by(found) != failed:
        found = [one for one in found if len(one.tests) > 1]
    return found


def explained_by(found: Sequence[Explanation[T]]) -> frozenset[Hashable]:
    """Return the tests that some explanations explain together."""
    return frozenset[Hashable]().union(*(one.tests for one in found))

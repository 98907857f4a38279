"""The rules from the outcomes of an exercise's tests to its points, for the grade and for the student check."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TestShare:
    """One test of an exercise, and how much of its weight the answer earns."""

    __test__ = False  # not a class of tests, whatever pytest makes of its name

    weight: float
    share: float | None
    """1 if the test passed, 0.5 if only the form of its result is wrong, else 0; None if it was not tried."""
    is_property: bool = False
    """The test is conditional: it earns nothing unless a test of hidden values passes."""
    is_public: bool = False
    is_essential: bool = False
    """An answer that fails the test earns at most half of the exercise's points, unless only its form is wrong."""


@dataclass(frozen=True)
class Points:
    """The points of an exercise's tests, in their order."""

    each: tuple[float, ...]
    withheld: tuple[bool, ...]
    """True for a test that would earn points if a test of hidden values passed."""
    tried: float
    """The points of the tests that were tried."""
    is_halved: bool
    """True if the points were reduced to half of the exercise's, because an essential test failed."""

    @property
    def earned(self) -> float:
        """Their sum."""
        return sum(self.each)


def distribute(tests: Sequence[TestShare], total: float) -> Points:
    """Distribute an exercise's points among its tests by weight. total: the exercise's points.

    The results of public tests are known, so that passing them proves nothing. Conditional tests then earn nothing,
    unless none of the tests of hidden values was tried.
    """
    worth = total / sum(test.weight for test in tests)
    hidden_values = [test.share for test in tests if not test.is_property and not test.is_public]
    is_proven = any(hidden_values) or (bool(hidden_values) and all(share is None for share in hidden_values))
    withheld = tuple(test.is_property and not is_proven for test in tests)
    each = [
        0.0 if held else (test.share or 0.0) * test.weight * worth for test, held in zip(tests, withheld, strict=True)
    ]
    earned = sum(each)
    is_halved = earned > total / 2 and any(test.is_essential and test.share == 0.0 for test in tests)
    if is_halved:
        each = [points * (total / 2 / earned) for points in each]
    tried = sum(test.weight * worth for test in tests if test.share is not None)
    return Points(tuple(each), withheld, tried, is_halved)

"""Answers that the catalogue does not hold: what they must come to stands on each. One module a unit.

@rewritten("divided_by_d_k")
def _(scores, d_k):
    return (scores / d_k).softmax(-1)
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from autograder import catalogue, course

T = TypeVar("T")


@dataclass(frozen=True)
class Unseen:
    """An answer and the names that its mistake may be given; `must_be_named` where none is no right outcome."""

    unit: str
    answer: catalogue.Candidate
    names: tuple[str, ...]
    """One of these must be diagnosed; of two mistakes at once, both."""
    must_be_named: bool
    wrong: bool = True
    two_at_once: bool = False


_found: dict[str, list[Unseen]] = {}


def rewritten(misconception: str) -> Callable[[T], T]:
    """Marks a misconception of the catalogue in another style: it keeps its name."""
    return lambda answer: _keep(answer, misconception, (misconception,), must_be_named=True)


def both(one: str, other: str) -> Callable[[T], T]:
    """Marks two misconceptions of the catalogue at once, as someone else would write them: both must be diagnosed."""
    return lambda answer: _keep(answer, one, (one, other), must_be_named=True, two_at_once=True)


def unlisted(exercise: str, *may_be: str) -> Callable[[T], T]:
    """Marks a wrong answer that no entry stands for, nor two whose edits fit together: no name, or one of these."""
    return lambda answer: _keep(answer, exercise, may_be, must_be_named=False)


def right(exercise: str) -> Callable[[T], T]:
    """Marks a right answer."""
    return lambda answer: _keep(answer, exercise, (), must_be_named=False, wrong=False)


def unseen(unit: str) -> list[Unseen]:
    """The unit's answers from outside of the catalogue."""
    importlib.import_module(f"{__name__}.{unit}")
    return _found.get(unit, [])


def _keep(
    answer: Any, of: str, names: tuple[str, ...], *, must_be_named: bool, wrong: bool = True, two_at_once: bool = False
) -> Any:
    unit = answer.__module__.rpartition(".")[2]
    known = catalogue.misconceptions(unit)
    for name in names:
        if name not in known:
            raise ValueError(f"{answer.__module__}: the catalogue has no misconception `{name}`.")
    exercise = known[of].exercise if of in known else of
    assert exercise in [one.name for one in course.unit(unit).exercises], f"{answer.__module__}: no exercise `{of}`"
    number = len(_found.setdefault(unit, []))
    candidate = catalogue.Candidate(exercise, f"{exercise}-{number}", "", answer)
    _found[unit].append(Unseen(unit, candidate, names, must_be_named, wrong, two_at_once))
    return answer

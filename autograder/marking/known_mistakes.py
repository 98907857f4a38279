"""What the known mistakes show on the public examples, as numbers, for the check that students get.

A mistake that shows nothing there but errors, or no more than a right answer does, is known by what it shows on the
first of the other examples that it fails. One that shows errors alone is left to the hidden graders.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec
import torch

from .. import catalogue
from ..course import content
from ..handout.known import alike, as_pattern, numbers, public
from ..handout.tried import as_in_a_new_notebook, outcome
from .side_by_side import each

MOST_SENTENCES = 4
"""Mistakes that the public examples cannot tell apart are named together, up to so many."""
_DIGITS = 4
"""So many of a sum's decimals are released; that two are alike is asked of three."""

Rows = list[list[int | float]]
"""Checksums, which are whole numbers, and sums."""


class Shown(msgspec.Struct):
    """What a mistake shows."""

    passes: str
    """Which of all examples it passes, as a pattern."""
    shows: Rows
    at: int | None = None
    """On which example, where it is none of the public ones."""
    is_known: bool = True
    """Whether it shows anything by which it could be known."""


def of_exercise(unit: str, exercise: str, of: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the check looks a student's numbers up in. of: what is released of the exercise's graders."""
    return looked_up(unit, exercise, shown(unit, {exercise: of}, {})[exercise])


def shown(
    unit: str, of: Mapping[str, Mapping[str, Any]], before: Mapping[str, Mapping[str, Shown]]
) -> dict[str, dict[str, Shown]]:
    """What the mistakes in some exercises show, by exercise and the mistake's code. Raises ProcessLost.

    of: by exercise, what is released of its graders. before: what is known already, and not found out again.
    """
    harmless = [*catalogue.solutions(unit).values(), *catalogue.right_answers(unit).values()]
    right = [entry for entry in harmless if entry.exercise in of]
    rows = each(lambda entry: _shows(unit, entry, public(of[entry.exercise]["examples"])), right)
    harmless_rows: dict[str, list[Rows]] = {exercise: [] for exercise in of}
    for entry, shows in zip(right, rows, strict=True):
        harmless_rows[entry.exercise].append(shows)
    wrong = [(exercise, entry, entry.source()) for exercise in of for entry in _mistakes(unit, exercise)]
    new = [(exercise, entry) for exercise, entry, code in wrong if code not in before.get(exercise, {})]

    @cache
    def of_solution(exercise: str, at: int) -> Rows:
        return _shows(unit, catalogue.solutions(unit)[exercise], [of[exercise]["examples"][at]])

    made = iter(
        each(lambda one: _shown(unit, one[1], of[one[0]], harmless_rows[one[0]], partial(of_solution, one[0])), new)
    )
    found: dict[str, dict[str, Shown]] = {exercise: {} for exercise in of}
    for exercise, _, code in wrong:
        known = before.get(exercise, {})
        found[exercise][code] = known[code] if code in known else next(made)
    return found


def looked_up(unit: str, exercise: str, found: Mapping[str, Shown]) -> list[dict[str, Any]]:
    """The exercise's mistakes as they are released, those together that the check cannot tell apart."""
    mistakes: list[dict[str, Any]] = []
    for entry in _mistakes(unit, exercise):
        shows = found[entry.source()]
        if not shows.is_known:
            continue
        one = {"passes": shows.passes, "shows": shows.shows, **({} if shows.at is None else {"at": shows.at})}
        same = next((other for other in mistakes if _is_same(other, one)), None)
        if same is None:
            mistakes.append({"sentences": [entry.sentence], **one})
        elif entry.sentence not in same["sentences"]:  # of two forms of one mistake
            same["sentences"].append(entry.sentence)
    return [
        {**mistake, "shows": [[_rounded(number) for number in row] for row in mistake["shows"]]}
        for mistake in mistakes
        if len(mistake["sentences"]) <= MOST_SENTENCES
    ]


def _mistakes(unit: str, exercise: str) -> list[catalogue.Candidate]:
    known = sorted(catalogue.misconceptions(unit).values(), key=lambda entry: entry.name)
    return [one for one in known if one.exercise == exercise and one.caught_by != catalogue.FORBIDDEN]


def _shown(
    unit: str, entry: catalogue.Candidate, of: Mapping[str, Any], harmless: Sequence[Rows], right: Callable[[int], Rows]
) -> Shown:
    """harmless: what right answers show on the public examples. right: what the solution shows on one of all."""
    names = _names(unit, entry)
    passed = _passed(names, entry.exercise, of)
    # Then, with the same names, as the check does it: code may remember what was tried before.
    found = Shown(as_pattern(of["examples"], passed), _shows_of(names, public(of["examples"])))
    if any(alike(found.shows, other) for other in harmless) or not any(map(_tells_numbers, found.shows)):
        told = _first_to_tell(names, of["examples"], passed, right)
        if told is None:
            found.is_known = False
        else:
            found.at, found.shows = told
    return found


def _shows(unit: str, entry: catalogue.Candidate, examples: list[Any]) -> Rows:
    return _shows_of(_names(unit, entry), examples)


def _shows_of(names: dict[str, Any], examples: list[Any]) -> Rows:
    """In float64 wherever the code can compute in it, so that every machine finds the same digits."""
    rows, exact = numbers(names, examples), numbers(names, examples, torch.float64)
    return [_exact(row, other) for row, other in zip(rows, exact, strict=True)]


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the check cannot tell them apart."""
    return all(one.get(name) == other.get(name) for name in ("passes", "at")) and alike(one["shows"], other["shows"])


def _first_to_tell(
    names: dict[str, Any], examples: list[Any], passed: list[bool], right: Callable[[int], Rows]
) -> tuple[int, Rows] | None:
    """The first example that it fails by numbers which no rounding makes, with these; None where there is none."""
    for at, (example, is_passed) in enumerate(zip(examples, passed, strict=True)):
        if as_pattern([example], [is_passed]) != "0" or example.get("public", True):
            continue
        shows = _shows_of(names, [example])
        if any(map(_tells_numbers, shows)) and not alike(shows, right(at)):
            return at, shows
    return None


def _passed(names: dict[str, Any], exercise: str, of: Mapping[str, Any]) -> list[bool]:
    """Which of all examples it passes: so those are told apart that the public ones alone cannot tell."""
    with as_in_a_new_notebook():
        # What an answer may not call makes no example fail.
        found = outcome(names, exercise, {"points": 1, **of, "forbids": ()}, [])
    return [not one.problem for one in found.tried]


def _names(unit: str, entry: catalogue.Candidate) -> dict[str, Any]:
    return {**content.solutions(unit), entry.exercise: entry.anew().answer}


def _tells_numbers(row: list[float]) -> bool:
    """An error alone tells too little: many mistakes end in the same one."""
    return any(isinstance(number, float) for number in row)


def _rounded(number: float) -> float:
    return number if isinstance(number, int) else round(number, _DIGITS)


def _exact(row: list[float], exact: list[float]) -> list[float]:
    """The row as a student's float32 shows it, with the sums as float64 has them."""
    # The checksums hold the dtypes, which must be the student's.
    sums = [mine if isinstance(mine, int) else other for mine, other in zip(row, exact, strict=False)]
    return sums if alike([row], [sums]) else row

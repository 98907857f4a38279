"""What the known mistakes show on the public examples, as numbers, for the check that students get.

A mistake that shows nothing there but errors, or no more than a right answer does, is known by what it shows on the
first of the other examples that it fails. One that shows errors alone is left to the hidden graders.
"""

from collections.abc import Mapping
from typing import Any

import torch

from .. import catalogue
from ..course import content
from ..handout.known import alike, as_pattern, numbers, public
from ..handout.tried import as_in_a_new_notebook, outcome

MOST_SENTENCES = 4
"""Mistakes that the public examples cannot tell apart are named together, up to so many."""
_DIGITS = 4
"""So many of a sum's decimals are released; that two are alike is asked of three."""

Rows = list[list[float]]


def of_exercise(unit: str, exercise: str, of: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the check looks a student's numbers up in. of: what is released of the exercise's graders."""
    known = sorted(catalogue.misconceptions(unit).values(), key=lambda entry: entry.name)
    harmless = [*catalogue.solutions(unit).values(), *catalogue.right_answers(unit).values()]
    examples = public(of["examples"])
    right = [_shows(unit, entry, examples) for entry in harmless if entry.exercise == exercise]
    mistakes: list[dict[str, Any]] = []
    for entry in known:
        if entry.exercise != exercise or entry.caught_by == catalogue.FORBIDDEN:
            continue
        passed = _passed(unit, entry, of)
        found: dict[str, Any] = {"passes": as_pattern(of["examples"], passed), "shows": _shows(unit, entry, examples)}
        if any(alike(found["shows"], other) for other in right) or not any(map(_tells_numbers, found["shows"])):
            told = _first_to_tell(unit, entry, of["examples"], passed)
            if told is None:
                continue
            found["at"], found["shows"] = told
        same = next((one for one in mistakes if _is_same(one, found)), None)
        if same is None:
            mistakes.append({"sentences": [entry.sentence], **found})
        else:
            same["sentences"].append(entry.sentence)
    return [
        {**mistake, "shows": [[_rounded(number) for number in row] for row in mistake["shows"]]}
        for mistake in mistakes
        if len(mistake["sentences"]) <= MOST_SENTENCES
    ]


def _shows(unit: str, entry: catalogue.Candidate, examples: list[Any]) -> Rows:
    """In float64 wherever the code can compute in it, so that every machine finds the same digits."""
    names = _names(unit, entry)
    rows, exact = numbers(names, examples), numbers(names, examples, torch.float64)
    return [_exact(row, other) for row, other in zip(rows, exact, strict=True)]


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether the check cannot tell them apart."""
    return all(one.get(name) == other.get(name) for name in ("passes", "at")) and alike(one["shows"], other["shows"])


def _first_to_tell(
    unit: str, entry: catalogue.Candidate, examples: list[Any], passed: list[bool]
) -> tuple[int, Rows] | None:
    """The first example that it fails by numbers which no rounding makes, with these; None where there is none."""
    solution = catalogue.solutions(unit)[entry.exercise]
    for at, (example, right) in enumerate(zip(examples, passed, strict=True)):
        if as_pattern([example], [right]) != "0" or example.get("public", True):
            continue
        shows = _shows(unit, entry, [example])
        if any(map(_tells_numbers, shows)) and not alike(shows, _shows(unit, solution, [example])):
            return at, shows
    return None


def _passed(unit: str, entry: catalogue.Candidate, of: Mapping[str, Any]) -> list[bool]:
    """Which of all examples it passes: so those are told apart that the public ones alone cannot tell."""
    with as_in_a_new_notebook():
        # What an answer may not call makes no example fail.
        found = outcome(_names(unit, entry), entry.exercise, {"points": 1, **of, "forbids": ()}, [])
    return [not one.problem for one in found.tried]


def _names(unit: str, entry: catalogue.Candidate) -> dict[str, Any]:
    return {**content.solutions(unit), entry.exercise: entry.answer}


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

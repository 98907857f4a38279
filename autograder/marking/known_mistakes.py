"""What the known mistakes show on the public examples, as numbers, for the check that students get.

A mistake that shows nothing there but errors, or no more than a right answer does, is left to the hidden graders.
"""

from collections.abc import Mapping
from typing import Any

import torch

from .. import catalogue
from ..course import content
from ..handout.check import alike, numbers

MOST_SENTENCES = 4
"""Mistakes that the public examples cannot tell apart are named together, up to so many."""

Rows = list[list[float]]


def of_unit(unit: str, examples: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """By exercise, what the check looks a student's numbers up in."""
    known = sorted(catalogue.misconceptions(unit).values(), key=lambda entry: entry.name)
    harmless = [*catalogue.solutions(unit).values(), *catalogue.right_answers(unit).values()]
    table: dict[str, list[Any]] = {}
    for exercise, its_examples in examples.items():
        right = [_shows(unit, entry, its_examples) for entry in harmless if entry.exercise == exercise]
        mistakes: list[dict[str, Any]] = []
        for entry in known:
            if entry.exercise != exercise or entry.caught_by == catalogue.FORBIDDEN:
                continue
            shows = _shows(unit, entry, its_examples)
            if any(alike(shows, other) for other in right) or not any(map(_tells_numbers, shows)):
                continue
            same = next((mistake for mistake in mistakes if alike(shows, mistake["shows"])), None)
            if same is None:
                mistakes.append({"sentences": [entry.sentence], "shows": shows})
            else:
                same["sentences"].append(entry.sentence)
        table[exercise] = [mistake for mistake in mistakes if len(mistake["sentences"]) <= MOST_SENTENCES]
    return table


def _shows(unit: str, entry: catalogue.Candidate, examples: list[Any]) -> Rows:
    """In float64 wherever the code can compute in it, so that every machine finds the same digits."""
    names = {**content.solutions(unit), entry.exercise: entry.answer}
    rows, exact = numbers(names, examples), numbers(names, examples, torch.float64)
    return [_exact(row, other) for row, other in zip(rows, exact, strict=True)]


def _tells_numbers(row: list[float]) -> bool:
    """An error alone tells too little: many mistakes end in the same one."""
    return any(isinstance(number, float) for number in row)


def _exact(row: list[float], exact: list[float]) -> list[float]:
    """The row as a student's float32 shows it, with the sums as float64 has them."""
    # The checksums hold the dtypes, which must be the student's.
    sums = [mine if isinstance(mine, int) else other for mine, other in zip(row, exact, strict=False)]
    return sums if alike([row], [sums]) else row

"""Statistics of a class's scores: their distribution, and each exercise's difficulty and discrimination."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from .. import course
from ..gradebook.marks import Mark
from ..gradebook.spreadsheet import rounded
from .class_report_schema import ExerciseFigures, Spread

DIGITS = 4
"""Decimals of the figures in a report; a score has two."""
_FEWEST = 3
_NOISE = 6
"""Decimals to which sums of scores are compared: sums of binary fractions differ by less."""


def spread(marks: Sequence[Mark]) -> Spread | None:
    """Return the distribution of the scores of all submissions; None if there are none."""
    scores = sorted(mark.score for mark in marks)
    if not scores:
        return None
    lower, median, upper = statistics.quantiles(scores, method="inclusive") if len(scores) > 1 else scores * 3
    figures = (statistics.fmean(scores), median, lower, upper, scores[0], scores[-1])
    return Spread(*(rounded(figure, DIGITS) for figure in figures))


def exercises(
    points: Mapping[str, float], marks: Sequence[Mark], headings: Mapping[str, str]
) -> Iterator[ExerciseFigures]:
    """Yield the statistics of each exercise and written question.

    points: the most that each grade cell gives, by its name. headings: those of the sections, by grade cell.
    """
    waiting = {name for mark in marks for name in points if name not in mark.shown.scores or name in mark.waiting}
    for cell, worth in points.items():
        submitted = [mark for mark in marks if cell in mark.shown.scores]
        graded = [mark for mark in submitted if cell not in mark.waiting]
        scores = [mark.shown.scores[cell] for mark in graded]
        passed = sum(round(score - worth, _NOISE) >= 0 for score in scores)
        # A damaged file has no answers: its zeros would make every exercise look alike.
        items = [mark.shown for mark in graded if mark.status != "damaged"]
        rest = [sum(item.scores[name] for name in points if name != cell and name not in waiting) for item in items]
        pass_rate = rounded(passed / len(scores), DIGITS) if scores else None
        mean = rounded(statistics.fmean(scores), DIGITS) if scores else None
        discrimination = _correlation([item.scores[cell] for item in items], rest)
        name, is_written = cell.removeprefix(course.CHECK_PREFIX), not cell.startswith(course.CHECK_PREFIX)
        yield ExerciseFigures(
            name, headings.get(cell, ""), worth, is_written,
            len(graded), len(submitted) - len(graded), passed, pass_rate, mean, discrimination,
        )  # fmt: skip


def _correlation(scores: Sequence[float], rest: Sequence[float]) -> float | None:
    """Return Pearson's correlation; None if there are too few scores, or if either is constant."""
    if len(scores) < _FEWEST:
        return None
    try:
        figure = statistics.correlation(*([round(value, _NOISE) for value in values] for values in (scores, rest)))
    except statistics.StatisticsError:
        return None
    return rounded(figure, DIGITS)

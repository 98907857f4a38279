"""How marks are spread, and what each exercise tells of those who did it: difficulty and discrimination."""

import statistics
from collections.abc import Mapping, Sequence

from .. import course
from ..gradebook.marks import Mark
from ..gradebook.rounding import rounded
from .shape import ExerciseFigures, Spread

DIGITS = 4
"""Of the figures in a report; a mark has two."""
_FEWEST = 3
_ALMOST = 1e-6
"""Below full marks: a sum of shares may miss them by less."""


def spread(handed_in: Sequence[Mark]) -> Spread | None:
    """Of the marks of those who handed in; None if nobody did."""
    scores = sorted(one.score for one in handed_in)
    if not scores:
        return None
    lower, median, upper = statistics.quantiles(scores, method="inclusive") if len(scores) > 1 else scores * 3
    figures = (statistics.fmean(scores), median, lower, upper, scores[0], scores[-1])
    return Spread(*(rounded(figure, DIGITS) for figure in figures))


def exercises(
    points: Mapping[str, float], handed_in: Sequence[Mark], sections: Mapping[str, str]
) -> list[ExerciseFigures]:
    """The figures of each exercise and written question. points: of each grade cell, by its name."""
    waiting = {name for one in handed_in for name in points if name not in one.shown.scores or name in one.waiting}
    settled = [name for name in points if name not in waiting]
    return [_figures(name, worth, handed_in, settled, sections.get(name, "")) for name, worth in points.items()]


def _figures(
    cell: str, worth: float, handed_in: Sequence[Mark], settled: Sequence[str], section: str
) -> ExerciseFigures:
    there = [one for one in handed_in if cell in one.shown.scores]
    marked = [one for one in there if cell not in one.waiting]
    scores = [one.shown.scores[cell] for one in marked]
    passed = sum(score >= worth - _ALMOST for score in scores)
    # A damaged file has no answers: its zeros would make every exercise look alike.
    told = [one for one in marked if one.status != "damaged"]
    rest = [sum(one.shown.scores[name] for name in settled if name != cell) for one in told]
    return ExerciseFigures(
        cell.removeprefix(course.CHECK_PREFIX),
        section,
        worth,
        not cell.startswith(course.CHECK_PREFIX),
        len(marked),
        len(there) - len(marked),
        passed,
        rounded(passed / len(scores), DIGITS) if scores else None,
        rounded(statistics.fmean(scores), DIGITS) if scores else None,
        _correlation([one.shown.scores[cell] for one in told], rest),
    )


def _correlation(scores: Sequence[float], rest: Sequence[float]) -> float | None:
    """Pearson's; None where it says nothing."""
    if len(scores) < _FEWEST or _is_constant(scores) or _is_constant(rest):
        return None
    return rounded(statistics.correlation(scores, rest), DIGITS)


def _is_constant(numbers: Sequence[float]) -> bool:
    return max(numbers) - min(numbers) < _ALMOST

"""Marks what the kit knows of a unit, an exercise at a time, on all processors: the proof of the graders."""

from collections import defaultdict
from collections.abc import Sequence

from .. import catalogue, course
from ..client.requests import Known
from ..report import ExerciseReport
from .side_by_side import each
from .submission import Desk


def marked(desk: Desk, unit_name: str, known: Sequence[Known]) -> list[ExerciseReport]:
    """What the graders make of each of these mistakes and right answers. Raises ProcessLost."""
    unit = course.unit(unit_name)
    entries = {"misconception": catalogue.misconceptions(unit_name), "right_answer": catalogue.right_answers(unit_name)}
    asked: dict[str, list[int]] = defaultdict(list)
    for number, (kind, name) in enumerate(known):
        asked[entries[kind][name].exercise].append(number)
    dearest = sorted(asked.values(), key=len, reverse=True)

    def one(number: int) -> ExerciseReport:
        kind, name = known[number]
        entry = entries[kind][name]
        return desk.mark_candidate(unit, entry).exercise(entry.exercise)

    found = each(lambda numbers: list(map(one, numbers)), dearest)
    reports = {
        number: report for its, of in zip(dearest, found, strict=True) for number, report in zip(its, of, strict=True)
    }
    return [reports[number] for number in range(len(known))]

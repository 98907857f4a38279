"""Gradescope's results.json: the score, and an entry for each grader."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from ..notebook import printable_lines
from ..report import ExerciseReport, Report, TestReport
from . import told

Visibility = Literal["visible", "hidden", "after_due_date", "after_published"]


class _Entry(msgspec.Struct, omit_defaults=True):
    name: str
    output: str
    visibility: Visibility
    output_format: str
    score: float | None = None
    max_score: float | None = None
    status: str = ""


class _Results(msgspec.Struct, omit_defaults=True):
    output: str
    output_format: str
    visibility: Visibility
    tests: list[_Entry]
    extra_data: dict[str, str]
    score: float | None = None


def results(report: Report, hidden: Visibility) -> bytes:
    """The file's content.

    hidden: who sees what comes of the graders whose numbers are not released. Where we could not read the file, or a
    grader of ours failed, there is no score, which Gradescope takes for a run that failed: that is not the student's 0.
    """
    said = [report.message, *(f"{question.name}: {told.of_written(question)}" for question in report.written)]
    content = _Results(
        printable_lines("\n".join(filter(None, said))),
        "text",
        "visible",
        [entry for exercise in report.exercises for entry in _entries(exercise, hidden)] if report.is_result else [],
        {name: getattr(report, name) for name in ("status", "isolation", "version", "kit", "submission")},
        report.score if report.is_result else None,
    )
    return msgspec.json.format(msgspec.json.encode(content)) + b"\n"


def _entries(exercise: ExerciseReport, hidden: Visibility) -> Iterator[_Entry]:
    if said := told.of_exercise(exercise):
        yield _Entry(f"{exercise.name}: {exercise.score:g} of {exercise.max_score:g}", said, hidden, "text")
    for test in exercise.tests:
        yield _Entry(
            f"{exercise.name}: {test.name.removeprefix('test_').replace('_', ' ')}",
            printable_lines(test.message),
            "visible" if test.public else hidden,
            "text",
            round(test.points, 2),
            round(test.max_points, 2),
            _status(test),
        )


def _status(test: TestReport) -> str:
    return "passed" if test.outcome == "passed" else "failed"

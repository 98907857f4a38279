"""A class as JSON, a line for each student: what `autograder grade --json` prints."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from .. import course
from ..classroom.assignment import NotGraded
from ..classroom.grade import ClassResult, Row
from ..report import ExerciseReport, ExerciseStatus, SubmissionStatus


class WrongExercise(msgspec.Struct, frozen=True):
    """An exercise that is not right."""

    name: str
    status: ExerciseStatus
    score: float
    max_score: float
    mistakes: list[str]
    """The names of the known mistakes in it: none, one, or two that were made at once."""


class StudentLine(msgspec.Struct, frozen=True):
    """One student's mark, as it is in the gradebook; autograded/STUDENT/UNIT/report.json has all of it."""

    student: str
    """The id, or the name of a folder that cannot be a student's."""
    unit: str
    status: SubmissionStatus | Literal["not_graded"]
    """not_graded: the folder cannot be a student's, and `problem` says why."""
    score: float
    """Given by the graders; written questions are not in it."""
    max_score: float
    exercises: list[WrongExercise] = []
    """Those that are not right."""
    message: str = ""
    """What the student reads about the notebook as a whole."""
    note: str = ""
    """What to know about the student's files."""
    late_seconds: float | None = None
    """Time from the due date to the submission; null if it was not late, or if that is unknown."""
    marked_now: bool = False
    """Whether this run marked it; if not, it was left alone, or nothing was handed in."""
    problem: str = ""
    """Why there is no mark, or why it could not be recorded; empty if it was."""
    isolation: str = ""
    device: str = ""
    lateness: Literal["", "late", "unknown"] = ""
    """unknown: the time stamp does not determine the time of submission. Empty if it was not late."""
    late_penalty: float = 0.0
    """The points that are taken off because it was late; `score` does not have it."""
    time_stamp: str = ""
    """Text of the time stamp if it does not determine a time; else empty."""
    updates: list[str] = []
    """Changes by this run to a submission that it did not grade again: `late penalty`, `roster entry`."""


def class_lines(unit: course.Unit, result: ClassResult) -> Iterator[StudentLine]:
    """Everyone in the class, and the folders that could not be graded."""
    for row in result.rows:
        yield _of_row(unit, row, result)
    for one in result.refused:
        yield _refused(unit, one)


def _of_row(unit: course.Unit, row: Row, result: ClassResult) -> StudentLine:
    report, student = row.report, row.student
    handed_in = report.status != "not_submitted"
    late = result.late.get(student) if handed_in else None
    time_stamp = result.unresolved.get(student, "") if handed_in else ""
    is_unknown = handed_in and student in result.unresolved
    return StudentLine(
        student,
        unit.name,
        report.status,
        report.score,
        float(unit.max_score),
        [_of_exercise(exercise) for exercise in report.exercises if exercise.status != "passed"],
        report.message,
        row.note,
        late.total_seconds() if late else None,
        row.is_new and handed_in,
        row.problem,
        report.isolation,
        report.device,
        "unknown" if is_unknown else "late" if late else "",
        result.penalised.get(student, 0.0),
        time_stamp,
        list(row.updates),
    )


def _of_exercise(exercise: ExerciseReport) -> WrongExercise:
    mistakes = [mistake.name for mistake in exercise.mistakes]
    return WrongExercise(exercise.name, exercise.status, exercise.score, exercise.max_score, mistakes)


def _refused(unit: course.Unit, one: NotGraded) -> StudentLine:
    return StudentLine(one.name, unit.name, "not_graded", 0.0, float(unit.max_score), problem=one.reason)

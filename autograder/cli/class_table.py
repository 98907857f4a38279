"""The table that `autograder grade` ends with: one row per student, and what to know about each mark."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import ceil

from rich.table import Table

from .. import course
from ..classroom.grade import ClassResult, Row
from ..classroom.preview import Change
from ..report import NOT_WRITTEN, ExerciseReport
from .saying import shown

_STATUS = {
    "graded": "graded",
    "cells_failed": "cells failed",
    "timed_out": "timed out",
    "crashed": "crashed",
    "damaged": "damaged",
    "not_submitted": "nothing submitted",
    "grader_error": "grader error",
}

_ISOLATION = {"none": "none: NOT ISOLATED"}


def class_table(unit: course.Unit, result: ClassResult) -> Table:
    """Students, statuses, scores, and the name of the mistake for each exercise that is not right."""
    table = Table(title=f"{unit.name}: {len(result.rows)} students{_conditions(result)}", title_justify="left")
    table.add_column("student")
    table.add_column("status", no_wrap=True)
    table.add_column("by graders", justify="right", no_wrap=True)
    table.add_column("what to know", overflow="fold")
    for row in result.rows:
        score = f"{row.report.score:g} / {unit.max_score:g}"
        table.add_row(shown(row.student), _STATUS[row.report.status], score, shown(_notes(row, result.late)))
    for one in result.refused:
        table.add_row(shown(one.name), "not graded", "", shown(f"NOT GRADED: {one.reason}"))
    return table


def _conditions(result: ClassResult) -> str:
    """The device and isolation of the marks in the table; empty if no mark was given."""
    given = sorted({(row.report.device, row.report.isolation) for row in result.rows if row.report.isolation})
    told = [f"device {device}, isolation {_ISOLATION.get(level, level)}" for device, level in given]
    return f" ({'; '.join(told)})" if told else ""


def changes_table(unit: str, changes: Sequence[Change]) -> Table | str:
    """Whose marks would change, and why."""
    if not changes:
        return f"{unit}: no mark would change."
    students = len({change.student for change in changes})
    table = Table(title=f"{unit}: the marks of {students} students would change", title_justify="left")
    for column in ("student", "exercise", "score", "why"):
        table.add_column(column, overflow="fold")
    for change in changes:
        score = f"{change.before:g} -> {change.after:g}"
        table.add_row(shown(change.student), change.exercise, score, shown(change.why))
    return table


def _notes(row: Row, late: Mapping[str, timedelta]) -> str:
    wrong = [exercise for exercise in row.report.exercises if exercise.status != "passed"]
    delay = f"Late by {_rounded(late[row.student])}." if row.student in late and row.report.notebook else ""
    unrecorded = f"NOT RECORDED: {row.problem}" if row.problem else ""
    handed_in = "" if row.note in row.report.message else row.note
    notes = [*map(_note, wrong), row.report.message, handed_in, delay, unrecorded]
    return "\n".join(filter(None, notes))


def _rounded(delay: timedelta) -> str:
    """The delay, rounded up to whole minutes, hours or days."""
    for unit, length in (("days", 86_400), ("hours", 3_600)):
        if delay.total_seconds() >= 2 * length:
            return f"{ceil(delay.total_seconds() / length)} {unit}"
    return f"{ceil(delay.total_seconds() / 60)} min"


def _note(exercise: ExerciseReport) -> str:
    unwritten = exercise.message.startswith(NOT_WRITTEN)
    mistake = exercise.diagnosis.names if exercise.diagnosis else "not written" if unwritten else exercise.status
    return f"{exercise.name} {exercise.score:g}/{exercise.max_score:g}: {mistake}"

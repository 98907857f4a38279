"""What `autograder grade` ends with: one row per student, and what to know about each mark."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from .. import course
from ..classroom.grade import ClassResult, Row
from ..classroom.preview import PENALTY, Change, Preview
from ..gradebook.lateness import in_words
from ..report import NOT_WRITTEN, ExerciseReport
from .saying import shown

_STATUS = {
    "graded": "graded",
    "cells_failed": "cells failed",
    "timed_out": "timed out",
    "crashed": "crashed",
    "damaged": "damaged",
    "unreadable": "unreadable",
    "not_submitted": "nothing submitted",
    "grader_error": "grader error",
}

_WIDEST = 40
"""Of a column in lines without boxes, in characters; longer names push the rest of their line aside."""

_ISOLATION = {"none": "none: NOT ISOLATED"}


def class_table(unit: course.Unit, root: Path, result: ClassResult) -> Table:
    """Students, statuses, scores, and the name of the mistake for each exercise that is not right.

    root: the class's folder, which keeps its own points.
    """
    table = Table(title=_title(unit, root, result), title_justify="left")
    table.add_column("student")
    table.add_column("status", no_wrap=True)
    table.add_column("by graders", justify="right", no_wrap=True)
    table.add_column("what to know", overflow="fold")
    for student, status, score, notes in _rows(unit, result):
        table.add_row(shown(student), status, score, shown("\n".join(notes)))
    return table


def class_in_lines(unit: course.Unit, root: Path, result: ClassResult) -> Iterator[Text]:
    """The same without boxes, a line for each student: for a file, a mail, or another program."""
    yield Text(_title(unit, root, result))
    rows = list(_rows(unit, result))
    widths = [min(max(len(str(shown(row[column]))) for row in rows), _WIDEST) for column in range(3)]
    for student, status, score, notes in rows:
        line = f"{shown(student).plain:<{widths[0]}}  {status:<{widths[1]}}  {score:>{widths[2]}}  {_joined(notes)}"
        yield shown(line.rstrip())


def _title(unit: course.Unit, root: Path, result: ClassResult) -> str:
    return f"{unit.name}: {len(result.rows)} students, {_points(unit, root)}{_conditions(result)}"


def _points(unit: course.Unit, root: Path) -> str:
    """What the unit is worth, and how much of that the graders do not give."""
    points = sum(unit.points.values())
    by_hand = f", {points - unit.max_score:g} by hand" if points > unit.max_score else ""
    return f"{points:g} points{by_hand}"


def _rows(unit: course.Unit, result: ClassResult) -> Iterator[tuple[str, str, str, list[str]]]:
    """Each student's id, status and score, and what to know."""
    for row in result.rows:
        score = f"{row.report.score:g} / {unit.max_score:g}"
        yield row.student, _STATUS[row.report.status], score, _notes(row, result)
    for one in result.refused:
        yield one.name, "not graded", "", [f"NOT GRADED: {one.reason}"]


def _joined(notes: Sequence[str]) -> str:
    """Notes and sentences in one line."""
    line = ""
    for note in notes:
        line += f"{'' if not line else ' ' if line.endswith('.') else '; '}{' '.join(note.splitlines())}"
    return line


def _conditions(result: ClassResult) -> str:
    """The device and isolation of the marks in the table; empty if no mark was given."""
    given = sorted({(row.report.device, row.report.isolation) for row in result.rows if row.report.isolation})
    told = [f"device {device}, isolation {_ISOLATION.get(level, level)}" for device, level in given]
    return f" ({'; '.join(told)})" if told else ""


def changes_table(unit: str, changes: Sequence[Change]) -> Table:
    """The changes that a run would make, and why."""
    table = Table(title=changes_title(unit, changes), title_justify="left")
    for column in ("student", "exercise", "score", "why"):
        table.add_column(column, overflow="fold")
    for change in changes:
        table.add_row(shown(change.student), _exercise(change), shown(_values(change)), shown(change.why))
    return table


def changes_in_lines(unit: str, changes: Sequence[Change]) -> Iterator[Text]:
    """The same without boxes, a line for each change."""
    yield Text(changes_title(unit, changes))
    for change in changes:
        why = " ".join(change.why.splitlines())
        yield shown(f"{change.student}  {_exercise(change)}  {_values(change)}  {why}")


def changes_title(unit: str, changes: Sequence[Change]) -> str:
    """How many marks would change, in a sentence if none would."""
    students = len({change.student for change in changes if not isinstance(change.after, str)})
    return f"{unit}: the marks of {students} students would change" if students else f"{unit}: no mark would change."


def run_in_a_sentence(preview: Preview) -> str:
    """Return a sentence with the numbers of submissions that a run would grade and leave alone."""
    submitted = [row for row in preview.rows if row.report.status != "not_submitted"]
    graded = sum(row.is_new for row in submitted)
    return f"Would be graded: {graded}. Would be left alone: {len(submitted) - graded}."


def _exercise(change: Change) -> str:
    return change.exercise.replace("_", " ") if change.exercise == PENALTY else change.exercise


def _values(change: Change) -> str:
    before, after = (value if isinstance(value, str) else f"{value:g}" for value in (change.before, change.after))
    return f"{before} -> {after}"


def _notes(row: Row, result: ClassResult) -> list[str]:
    wrong = [exercise for exercise in row.report.exercises if exercise.status != "passed"]
    lateness = _lateness(row.student, result) if row.report.notebook else ""
    updated = f"Changed without grading again: {' and '.join(row.updates)}." if row.updates else ""
    unrecorded = f"NOT RECORDED: {row.problem}" if row.problem else ""
    handed_in = "" if row.note in row.report.message else row.note
    return [*filter(None, [*map(_note, wrong), row.report.message, handed_in, lateness, updated, unrecorded])]


def _lateness(student: str, result: ClassResult) -> str:
    """Describe the submission's lateness and its penalty, or state that the lateness is unknown."""
    if student in result.unresolved:
        return (
            f"LATENESS UNKNOWN: its timestamp.txt says `{result.unresolved[student]}`, which is no time that can be "
            "determined here. Is c.Exchange.timezone in nbgrader_config.py the zone of those who submit?"
        )
    if student not in result.late:
        return ""
    penalty = f", {result.penalised[student]:g} points taken off" if student in result.penalised else ""
    return f"Late by {in_words(result.late[student])}{penalty}."


def _note(exercise: ExerciseReport) -> str:
    unwritten = exercise.message.startswith(NOT_WRITTEN)
    mistake = exercise.diagnosis.names if exercise.diagnosis else "not written" if unwritten else exercise.status
    return f"{exercise.name} {exercise.score:g}/{exercise.max_score:g}: {mistake}"

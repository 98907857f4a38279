"""A graded class as `autograder grade` prints it: a table with a row for each student, or JSON lines."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Literal

import msgspec
from rich.table import Table
from rich.text import Text

from .. import course
from ..classroom.assignment import NotGraded
from ..classroom.grade import PENALTY, Change, ClassResult, Preview, Row
from ..gradebook.lateness import exactly, in_words
from ..report import NOT_WRITTEN, ExerciseReport, ExerciseStatus, SubmissionStatus
from .console import printable

_WIDEST = 40
"""Width of a column in lines without boxes, in characters; longer names move the rest of their line."""

_ISOLATION = {"none": "none: NOT ISOLATED"}


def class_table(unit: course.Unit, result: ClassResult) -> Table:
    """Return a table of students, statuses, scores, and the mistake in each exercise that is not right."""
    table = Table(title=Text(_title(unit, result)), title_justify="left")
    table.add_column("student")
    table.add_column("status", no_wrap=True)
    table.add_column("by graders", justify="right", no_wrap=True)
    has_late_days = bool(result.grades.late_days)
    if has_late_days:
        table.add_column("late days left", justify="right")
    table.add_column("what to know", overflow="fold")
    for student, status, score, days, notes in _rows(unit, result):
        table.add_row(
            printable(student), status, score, *([days] if has_late_days else []), printable("\n".join(notes))
        )
    return table


def class_in_lines(unit: course.Unit, result: ClassResult) -> Iterator[Text]:
    """Yield the rows of `class_table` without boxes, a line for each student: for files, mails and other programs."""
    yield Text(_title(unit, result))
    rows = list(_rows(unit, result))
    widths = [min(max(len(str(printable(row[column]))) for row in rows), _WIDEST) for column in range(3)]
    for student, status, score, days, notes in rows:
        notes += [f"Late days left: {days}."] if days else []
        line = f"{printable(student).plain:<{widths[0]}}  {status:<{widths[1]}}  {score:>{widths[2]}}  {_joined(notes)}"
        yield printable(line.rstrip())


def _title(unit: course.Unit, result: ClassResult) -> str:
    """Name the unit, its points, those that a person gives, and the device and isolation of the grades."""
    points = sum(unit.points.values())
    by_hand = f", {points - unit.max_score:g} by hand" if points > unit.max_score else ""
    pairs = sorted({(row.report.device, row.report.isolation) for row in result.rows if row.report.isolation})
    conditions = "; ".join(f"device {device}, isolation {_ISOLATION.get(level, level)}" for device, level in pairs)
    in_brackets = f" ({conditions})" if conditions else ""
    name = unit.name if result.section is None else f"{unit.name}, section {result.section}"
    return f"{printable(name)}: {len(result.rows)} students, {points:g} points{by_hand}{in_brackets}"


def _rows(unit: course.Unit, result: ClassResult) -> Iterator[tuple[str, str, str, str, list[str]]]:
    """Yield each student's id, status and score, the late days left, if the class has any, and notes."""
    for row in result.rows:
        score = f"{row.report.score:g} / {unit.max_score:g}"
        status = row.report.status.replace("_", " ").replace("not submitted", "nothing submitted")
        days = result.grades.late_days.get(row.student)
        yield row.student, status, score, str(days.left) if days else "", _notes(row, result)
    for one in result.refused:
        yield one.name, "not graded", "", "", [f"NOT GRADED: {one.reason}"]


def _joined(notes: Sequence[str]) -> str:
    """Join notes and sentences into one line."""
    line = ""
    for note in notes:
        line += f"{'' if not line else ' ' if line.endswith('.') else '; '}{' '.join(note.splitlines())}"
    return line


def changes_in_lines(unit: str, changes: Sequence[Change]) -> Iterator[Text]:
    """Yield the number of students whose grades a run would change, then a line for each change, with its reason."""
    yield Text(_changes_title(unit, changes))
    for change in changes:
        why = " ".join(change.why.splitlines())
        yield printable(f"{change.student}  {_exercise(change)}  {_values(change)}  {why}")


def _changes_title(unit: str, changes: Sequence[Change]) -> str:
    """Return the number of students whose grades would change."""
    students = len({change.student for change in changes if not isinstance(change.after, str)})
    if not students:
        return f"{unit}: no grade would change."
    return f"{unit}: the grades of {students} {'student' if students == 1 else 'students'} would change"


def describe_run(preview: Preview) -> str:
    """Return sentences with the numbers of submissions that a run would grade, change otherwise, and leave alone."""
    submitted = [row for row in preview.rows if row.report.status != "not_submitted"]
    graded = sum(row.is_new for row in submitted)
    counted = sum("points" in row.updates and not row.is_new for row in submitted)
    again = f" Only points or maximum would change: {counted}." if counted else ""
    return f"Would be graded: {graded}.{again} Would be left alone: {len(submitted) - graded - counted}."


def _exercise(change: Change) -> str:
    return change.exercise.replace("_", " ") if change.exercise == PENALTY else change.exercise


def _values(change: Change) -> str:
    before, after = (value if isinstance(value, str) else f"{value:g}" for value in (change.before, change.after))
    return f"{before} -> {after}"


def _notes(row: Row, result: ClassResult) -> list[str]:
    wrong = [exercise for exercise in row.report.exercises if exercise.status != "passed" and exercise.max_score]
    lateness = _lateness(row.student, result) if row.report.notebook else ""
    extension = result.grades.extensions.get(row.student)
    extended = f"Extended by {exactly(extension)}." if extension else ""
    updated = f"Changed without grading again: {' and '.join(row.updates)}." if row.updates else ""
    unrecorded = f"NOT RECORDED: {row.problem}" if row.problem else ""
    handed_in = "" if row.note in row.report.message else row.note
    of_row = [row.report.message, handed_in, lateness, extended, updated, unrecorded]
    return [note for note in (*map(_exercise_note, wrong), *of_row) if note]


def _lateness(student: str, result: ClassResult) -> str:
    """Describe the submission's lateness and its penalty, or state that the lateness is unknown."""
    grade = result.grades.grades.get(student)
    if grade is None:
        return ""
    if grade.unresolved is not None:
        return (
            f"LATENESS UNKNOWN: the time `{grade.unresolved}` in its timestamp.txt cannot be determined. "
            "Is c.Exchange.timezone in nbgrader_config.py the time zone of the students?"
        )
    penalty = f", {grade.shown.late_penalty:g} points deducted" if grade.shown.late_penalty else ""
    days = grade.shown.deadline.days_spent
    spent = f", {days} late {'day' if days == 1 else 'days'} spent" if days else ""
    return f"Late by {in_words(grade.late)}{spent}{penalty}." if grade.late else ""


def _exercise_note(exercise: ExerciseReport) -> str:
    unwritten = exercise.message.startswith(NOT_WRITTEN)
    mistake = exercise.diagnosis.names if exercise.diagnosis else "not written" if unwritten else exercise.status
    return f"{exercise.name} {exercise.score:g}/{exercise.max_score:g}: {mistake}"


class WrongExercise(msgspec.Struct, frozen=True):
    """An exercise that is not right."""

    name: str
    status: ExerciseStatus
    score: float
    max_score: float
    mistakes: list[str]
    """The names of the known mistakes in it: none, one, or two that were made at once."""


class StudentLine(msgspec.Struct, frozen=True):
    """One student's grade, as it is in the gradebook; autograded/STUDENT/UNIT/report.json has the whole report."""

    student: str
    """The id, or the name of a folder that cannot be a student's."""
    unit: str
    status: SubmissionStatus | Literal["not_graded"]
    """not_graded: the folder cannot be a student's, and `problem` says why."""
    score: float
    """Points for the hidden tests, without those for written questions."""
    max_score: float
    exercises: list[WrongExercise] = []
    """The exercises that are not right."""
    message: str = ""
    """Message to the student about the notebook as a whole."""
    note: str = ""
    """Note on the student's files."""
    late_seconds: float | None = None
    """Time from the due date to the submission; null if it was not late, or if that is unknown."""
    marked_now: bool = False
    """True if this run graded the submission; otherwise it was left alone, or nothing was submitted."""
    problem: str = ""
    """Reason why there is no grade, or why it could not be recorded; empty if it was."""
    isolation: str = ""
    device: str = ""
    lateness: Literal["", "late", "unknown"] = ""
    """unknown: the time stamp does not determine the time of submission. Empty if it was not late."""
    late_penalty: float = 0.0
    """The points that are taken off for lateness; `score` is the score before that."""
    time_stamp: str = ""
    """Text of the time stamp if it does not determine a time; else empty."""
    updates: list[str] = []
    """Changes by this run to a submission that it did not grade again: `points`, `late penalty`, `roster entry`."""
    extension_seconds: float = 0.0
    """Time from the unit's due date to the student's own."""
    late_days_left: int | None = None
    """Late days left after this unit, for units that are due later; null if the class has none, or the unit has no
    due date."""


def class_lines(unit: course.Unit, result: ClassResult) -> Iterator[StudentLine]:
    """Yield a line for each student, and for each folder that could not be graded."""
    for row in result.rows:
        yield _of_row(unit, row, result)
    for one in result.refused:
        yield _refused(unit, one)


def _of_row(unit: course.Unit, row: Row, result: ClassResult) -> StudentLine:
    report, student = row.report, row.student
    handed_in = report.status != "not_submitted"
    grade = result.grades.grades.get(student)
    late = grade.late if grade and handed_in else None
    time_stamp = grade.unresolved if grade and handed_in else None
    days = result.grades.late_days.get(student)
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
        "unknown" if time_stamp is not None else "late" if late else "",
        grade.shown.late_penalty if grade else 0.0,
        time_stamp or "",
        list(row.updates),
        result.grades.extensions.get(student, timedelta()).total_seconds(),
        days.left if days else None,
    )


def _of_exercise(exercise: ExerciseReport) -> WrongExercise:
    mistakes = [mistake.name for mistake in exercise.mistakes]
    return WrongExercise(exercise.name, exercise.status, exercise.score, exercise.max_score, mistakes)


def _refused(unit: course.Unit, one: NotGraded) -> StudentLine:
    return StudentLine(one.name, unit.name, "not_graded", 0.0, float(unit.max_score), problem=one.reason)

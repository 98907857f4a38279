"""Composes the class report from the gradebook and the reports kept beside the marked notebooks."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from msgspec.structs import replace

from .. import __version__, course
from ..classroom.autograded import Autograded
from ..course.cells import code_cells
from ..course.sections import sections, title
from ..gradebook.course_directory import course_directory
from ..gradebook.marks import Mark, NoMarks, UnitMarks, of_units
from ..gradebook.roster import Enrolled
from ..gradebook.rounding import rounded
from ..notebook import RawNotebook, parse
from ..report import ExerciseReport, Report
from . import item_analysis
from .anonymity import Names, full_name
from .item_analysis import DIGITS
from .mistakes import Marked, answers, named, statements, what_went_wrong
from .shape import CellFigures, ClassReport, Concern, Row, ToLookAt

_BY_STATUS = {
    Concern.OUR_FAULT: "grader_error",
    Concern.DAMAGED: "damaged",
    Concern.TIMED_OUT: "timed_out",
    Concern.CRASHED: "crashed",
    Concern.CELLS_FAILED: "cells_failed",
}


def compose(root: Path, unit_name: str, *, is_anonymous: bool = False) -> ClassReport:
    """The report on a unit of the course in `root`. Raises UnknownUnit, NoMarks and CourseProblem."""
    if not root.is_dir():
        raise NoMarks(f"The course folder {root} is not there.")
    unit = course.unit(unit_name, root)
    (of_unit,) = of_units(root, [unit_name])
    marks, points = of_unit.marks, of_unit.points
    if not marks:
        of_class = shlex.quote(str(root))
        raise NoMarks(f"Nothing of {unit_name} is graded yet. Run `autograder grade {unit_name} --course {of_class}`.")
    autograded = Autograded(course_directory(root), unit_name)
    reports: dict[str, Report] = {}
    asked: dict[tuple[str, str], str] = {}
    for who, mark in marks.items():
        if (report := _kept(autograded, who, mark)) is not None:
            asked |= statements(report)
            reports[who] = _in_short(report)
    codes = {student: _codes(autograded, student, unit, report) for student, report in reports.items()}
    headings = sections(unit_name)
    names = Names(of_unit.students, _text_of(course.source(unit_name)))

    def is_anonymous_too(one: Marked, text: str) -> bool:
        return not names.is_in(text, reports[one.student].notebook.rpartition("/")[2])

    went_wrong = what_went_wrong(
        answers(reports, codes),
        len(marks),
        {exercise.name: headings.get(exercise.name, "") for exercise in unit.exercises},
        asked,
        fit=is_anonymous_too if is_anonymous else (lambda one, text: True),
        is_anonymous=is_anonymous,
    )
    rows = [_row(one, marks.get(one.id), points, reports.get(one.id)) for one in of_unit.students]
    handed_in = list(marks.values())
    return ClassReport(
        unit_name,
        title(unit_name),
        datetime.now(UTC).isoformat(timespec="seconds"),
        __version__,
        is_anonymous,
        len(of_unit.students),
        len(marks),
        of_unit.max_score,
        item_analysis.spread(handed_in),
        item_analysis.exercises(points, handed_in, headings),
        went_wrong.mistakes,
        went_wrong.clusters,
        went_wrong.unexplained,
        _to_look_at(of_unit, reports, is_anonymous=is_anonymous),
        _without_names(rows) if is_anonymous else rows,
    )


def _text_of(notebook: Path) -> str:
    """All cells of the course's own notebook; file names may have words of it."""
    found = parse(notebook.read_bytes())
    return "\n".join(cell.text for cell in found.cells) if isinstance(found, RawNotebook) else ""


def _kept(autograded: Autograded, student: str, mark: Mark) -> Report | None:
    """The report on the very file that the gradebook's mark is about, if it is there."""
    report = autograded.report(student)
    return report if report is not None and report.submission == mark.submission else None


def _in_short(report: Report) -> Report:
    """What goes into a class report: those of a large class are in memory together."""
    wrong = [_failed(exercise) for exercise in report.exercises if exercise.status != "passed"]
    return replace(report, exercises=wrong, cells=[], enforced=[], written=[])


def _failed(exercise: ExerciseReport) -> ExerciseReport:
    return replace(exercise, tests=[test for test in exercise.tests if test.outcome == "failed"])


def _codes(autograded: Autograded, student: str, unit: course.Unit, report: Report) -> dict[str, str]:
    """The cells with the answers that have not passed, by exercise, as the marked notebook has them."""
    wrong = [exercise.name for exercise in report.exercises if exercise.status != "passed"]
    if not wrong:
        return {}
    try:
        content = (autograded.folder(student) / f"{unit.name}.ipynb").read_bytes()
    except OSError:
        return {}
    notebook = parse(content)
    cells = code_cells(notebook, unit) if isinstance(notebook, RawNotebook) else []
    found = {}
    for exercise in wrong:
        defining = [cell.source for cell in cells if cell.defines(exercise)]
        found[exercise] = defining[-1] if defining else ""
    return found


def _row(one: Enrolled, mark: Mark | None, points: Mapping[str, float], report: Report | None) -> Row:
    if mark is None:
        return Row(one.id, full_name(one), "not_submitted", 0, 0.0, 0.0, 0.0, {})
    made = {of.name: [mistake.name for mistake in named(of)] for of in (report.exercises if report else [])}
    exercises = {name: name.removeprefix(course.CHECK_PREFIX) for name in points if name in mark.shown.scores}
    cells = {
        exercise: CellFigures(rounded(mark.shown.scores[name], DIGITS), name in mark.waiting, made.get(exercise, []))
        for name, exercise in exercises.items()
    }
    return Row(
        one.id,
        full_name(one),
        mark.status,
        ceil(mark.late.total_seconds() / 60),
        rounded(mark.shown.score, DIGITS),
        rounded(mark.shown.late_penalty, DIGITS),
        rounded(mark.score, DIGITS),
        cells,
        mark.shown.is_time_unresolved,
    )


def _without_names(rows: Iterable[Row]) -> list[Row]:
    """The rows in an order that depends on nothing but what they say."""
    bare = [Row("", "", row.status, 0, row.raw_score, row.late_penalty, row.score, row.cells) for row in rows]
    return sorted(bare, key=lambda row: (-row.score, [-cell.score for cell in row.cells.values()], repr(row)))


def _to_look_at(of_unit: UnitMarks, reports: Mapping[str, Report], *, is_anonymous: bool) -> list[ToLookAt]:
    marks = of_unit.marks
    found: dict[Concern, Sequence[str]] = {
        Concern.WAITING: [student for student, mark in marks.items() if mark.waiting],
        Concern.LATE: [student for student, mark in marks.items() if mark.late],
        Concern.LATENESS_UNKNOWN: [student for student, mark in marks.items() if mark.shown.is_time_unresolved],
        Concern.NOTHING: [one.id for one in of_unit.students if one.id not in marks],
        Concern.NO_REPORT: [student for student in marks if student not in reports],
    }
    for concern, status in _BY_STATUS.items():
        found[concern] = [student for student, mark in marks.items() if mark.status == status]
    shown = [(concern, list(found[concern])) for concern in Concern if found[concern]]
    return [ToLookAt(concern, len(who), [] if is_anonymous else who) for concern, who in shown]

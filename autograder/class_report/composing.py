"""Composes the class report from the gradebook and the reports kept beside the marked notebooks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from .. import __version__, course
from ..classroom.autograded import Autograded
from ..course.cells import code_cells
from ..course.sections import sections, title
from ..gradebook.class_marks import NothingGraded, StudentMarks, class_marks
from ..gradebook.course_directory import course_directory
from ..notebook import RawNotebook, parse
from ..report import Report
from . import item_analysis
from .anonymity import Names
from .item_analysis import DIGITS
from .mistakes import answers, named, statements, what_went_wrong
from .shape import CellFigures, ClassReport, Row, ToLookAt

_STATUSES = {"damaged": "damaged", "timed_out": "timed out", "crashed": "crashed", "cells_failed": "cells failed"}


def compose(root: Path, unit_name: str, *, is_anonymous: bool = False) -> ClassReport:
    """The report on a unit of the course in `root`. Raises UnknownUnit, NothingGraded and CourseProblem."""
    unit = course.unit(unit_name)
    if not root.is_dir():
        raise NothingGraded(f"The course folder {root} is not there.")
    everyone = class_marks(root, unit_name)
    handed_in = [one for one in everyone if one.is_handed_in]
    autograded = Autograded(course_directory(root), unit_name)
    reports = {one.student: report for one in handed_in if (report := _kept(autograded, one)) is not None}
    codes = {student: _codes(autograded, student, unit, report) for student, report in reports.items()}
    headings = sections(unit_name)
    points = course.points(unit_name)
    files = {report.notebook.rpartition("/")[2] for report in reports.values()} - {f"{unit_name}.ipynb"}
    names = Names(everyone, files)
    went_wrong = what_went_wrong(
        answers(reports, codes),
        len(handed_in),
        {exercise.name: headings.get(exercise.name, "") for exercise in unit.exercises},
        statements(reports.values()),
        fit=(lambda text: not names.is_in(text)) if is_anonymous else (lambda text: True),
        is_anonymous=is_anonymous,
    )
    rows = [_row(one, points, reports.get(one.student)) for one in everyone]
    return ClassReport(
        unit_name,
        title(unit_name),
        datetime.now(UTC).isoformat(timespec="seconds"),
        __version__,
        is_anonymous,
        len(everyone),
        len(handed_in),
        sum(points.values()),
        item_analysis.spread(handed_in),
        item_analysis.exercises(points, handed_in, headings),
        went_wrong.mistakes,
        went_wrong.clusters,
        went_wrong.unexplained,
        list(_to_look_at(everyone, reports, is_anonymous=is_anonymous)),
        _without_names(rows) if is_anonymous else rows,
    )


def _kept(autograded: Autograded, one: StudentMarks) -> Report | None:
    """The report on the very file that the gradebook's marks are about, if it is there."""
    report = autograded.report(one.student)
    return report if report is not None and report.submission == one.submission else None


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


def _row(one: StudentMarks, points: Mapping[str, float], report: Report | None) -> Row:
    exercises = report.exercises if report else []
    made = {exercise.name: [mistake.name for mistake in named(exercise)] for exercise in exercises}
    cells = {
        name.removeprefix(course.CHECK_PREFIX): CellFigures(
            round(one.cells[name].score, DIGITS),
            one.cells[name].is_waiting,
            made.get(name.removeprefix(course.CHECK_PREFIX), []),
        )
        for name in points
        if name in one.cells
    }
    return Row(
        one.student,
        one.name,
        one.status if one.is_handed_in else "not_submitted",
        ceil(one.late.total_seconds() / 60),
        round(sum(cell.score for cell in one.cells.values()), DIGITS),
        round(one.penalty, DIGITS),
        round(one.score, DIGITS),
        cells,
    )


def _without_names(rows: Iterable[Row]) -> list[Row]:
    """The rows in an order that depends on nothing but what they say."""
    bare = [Row("", "", row.status, 0, row.raw_score, row.late_penalty, row.score, row.cells) for row in rows]
    return sorted(bare, key=lambda row: (-row.score, [-cell.score for cell in row.cells.values()], repr(row)))


def _to_look_at(
    everyone: Sequence[StudentMarks], reports: Mapping[str, Report], *, is_anonymous: bool
) -> Iterable[ToLookAt]:
    handed_in = [one for one in everyone if one.is_handed_in]

    def listed(what: str, who: Iterable[StudentMarks], is_so: Callable[[StudentMarks], bool]) -> Iterable[ToLookAt]:
        ids = [one.student for one in who if is_so(one)]
        if ids:
            yield ToLookAt(what, len(ids), [] if is_anonymous else ids)  # type: ignore[arg-type]

    yield from listed("waiting for a person", handed_in, lambda one: any(c.is_waiting for c in one.cells.values()))
    yield from listed("our fault", handed_in, lambda one: one.status == "grader_error")
    for status, what in _STATUSES.items():
        yield from listed(what, handed_in, lambda one, status=status: one.status == status)  # type: ignore[misc]
    yield from listed("late", handed_in, lambda one: bool(one.late))
    yield from listed("nothing handed in", everyone, lambda one: not one.is_handed_in)
    yield from listed("no report", handed_in, lambda one: one.student not in reports)

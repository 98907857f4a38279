"""A class's grades in the gradebook, and their form in tables for spreadsheets and learning platforms.

Scores that persons gave, and late penalties, count as they do in nbgrader. Tables round points, quote texts, and
defuse formulas.
"""

import csv
import io
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from sqlalchemy.orm import Session

from .. import UserError, course
from . import nbgrader_course, records
from .entry import Cells, Shown, all_entries, find_cells
from .lateness import Deadlines, LateDays, extensions_of_unit
from .nbgrader_course import course_directory
from .roster import Enrolled, enrolled


class NoGrades(UserError):
    """There are no grades of a unit; `str()` says what to do."""


@dataclass(frozen=True)
class Grade:
    """One student's grade for a unit."""

    shown: Shown
    waiting: frozenset[str] = frozenset()
    """The grade cells that a person has still to grade, which count 0 until then."""
    late: timedelta = timedelta()
    """Time between the due date and the submission; zero if it was in time."""
    status: str = ""
    """Status of the report. Like the next two fields, empty if `autograder` did not give the grade."""
    submission: str = ""
    """SHA-256 of the graded file."""
    page: str = ""
    """Digest of the feedback page's content."""
    timestamp: datetime | None = None
    """Submission time in UTC, as recorded in the gradebook."""
    unresolved: str | None = None
    """Text of a time stamp that does not determine the submission time."""

    @property
    def score(self) -> float:
        """The score with the penalty, never below 0."""
        return max(0.0, self.shown.score - self.shown.late_penalty)


@dataclass(frozen=True)
class UnitGrades:
    """Everyone's grades for a unit."""

    unit: str
    points: Mapping[str, float]
    """Maximum score of each grade cell, in the notebook's order."""
    grades: Mapping[str, Grade]
    """Grades by student, sorted by id; students without a submission in the gradebook have none."""
    students: Sequence[Enrolled]
    """Everyone in the gradebook, by id."""
    extensions: Mapping[str, timedelta]
    """Extensions of the due date by student, also of those without a submission."""
    late_days: Mapping[str, LateDays]
    """Late days of everyone in the gradebook; empty if the class has none, or if the unit has no due date."""

    def of_students(self, ids: Collection[str]) -> "UnitGrades":
        """Return the grades of these students only."""
        return replace(
            self,
            grades={student: grade for student, grade in self.grades.items() if student in ids},
            students=[student for student in self.students if student.id in ids],
            extensions={student: extension for student, extension in self.extensions.items() if student in ids},
            late_days={student: days for student, days in self.late_days.items() if student in ids},
        )

    @property
    def max_score(self) -> float:
        """The maximum score, written questions included."""
        return sum(self.points.values())

    @property
    def waiting(self) -> int:
        """The number of written answers that a person has still to grade."""
        names = [name for grade in self.grades.values() for name in grade.waiting]
        return sum(not name.startswith(course.CHECK_PREFIX) for name in names)


def of_units(root: Path, units: list[str]) -> list[UnitGrades]:
    """Return the grades of these units in a course's gradebook. Raises UnknownUnit, NoGrades and CourseProblem."""
    for unit in units:
        course.unit(unit)
    gradebook = nbgrader_course.database_of(root)
    deadlines = Deadlines.of_course(course_directory(root))
    with gradebook.reading() as session:
        if session is None:
            raise NoGrades(f"Nothing is graded yet: there is no {gradebook}. Run `{_grade(units[0], root)}`.")
        cells = {unit: find_cells(session, unit) for unit in units}
        if unknown := next((unit for unit in units if cells[unit] is None), None):
            raise NoGrades(f"Nothing of {unknown} is graded in {gradebook} yet. Run `{_grade(unknown, root)}`.")
        return [unit_grades(session, unit, its, deadlines) for unit, its in cells.items() if its]


def _grade(unit: str, root: Path) -> str:
    return shlex.join(["autograder", "grade", unit, "--course", str(root)])


def unit_grades(session: Session, unit: str, cells: Cells, deadlines: Deadlines) -> UnitGrades:
    """Return everyone's grades for a unit."""
    in_order = [name for name in course.unit(unit).points if name in cells.points]
    in_order += [name for name in cells.points if name not in in_order]  # cells of an earlier version of the unit
    provenance = records.all_provenance(session)
    grades, days = {}, deadlines.days_of(session, unit)
    for student, entry in all_entries(session, cells, deadlines, days).items():
        origin = provenance.get(entry.id)
        about = (origin.status, origin.submission, origin.page) if origin else ("", "", "")
        waiting = frozenset(entry.waiting())
        grades[student] = Grade(entry.shown(), waiting, entry.late, *about, entry.timestamp, entry.unresolved)
    return UnitGrades(
        unit,
        {name: cells.points[name] for name in in_order},
        grades,
        enrolled(session),
        extensions_of_unit(session, unit),
        days,
    )


# Characters that spreadsheets read as the beginning of a formula, including the wide forms of East Asian scripts.
_BEGINS_FORMULA = tuple("=+-@|%\t\r\uff1d\uff0b\uff0d\uff20")
_AFTER_A_SEPARATOR = re.compile(rf"(?<=[;\t\r\n])(?=[ \n\v\f\"]*[{re.escape(''.join(_BEGINS_FORMULA))}])")
"""Positions within a text at which a spreadsheet that separates at semicolons or tabs would begin a formula."""
_NOT_A_NAME = re.compile(r"-|-?\d+([.,]\d+)?", re.ASCII)
"""A negative number, and the dash that means no value: neither is a formula."""
PLACES = 2
"""Decimal places of points."""
_NOISE = 9
"""Decimal places up to which sums of binary fractions are exact."""


def text(value: object) -> str:
    """Return a value as text for a spreadsheet, with an apostrophe before what could begin a formula.

    A program that reads CSV with commas gets every other text unchanged.
    """
    written = "" if value is None else str(value)
    begins = "'" if written.lstrip(" \n\v\f").startswith(_BEGINS_FORMULA) else ""
    return begins + _AFTER_A_SEPARATOR.sub("'", written)


def value(given: str) -> str:
    """Return a value from another program's table as text for a spreadsheet, as `text` does; keep numbers unchanged."""
    return given if _NOT_A_NAME.fullmatch(given) else text(given)


def rounded(number: float, places: int) -> float:
    """Round a number, halves up: to two places, 1.005 is 1.01 and 29.740000000000002 is 29.74. Never return -0."""
    return float(Decimal(repr(round(number, _NOISE))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)) + 0.0


def number(points: float) -> str:
    """Return points in two decimal places at most, halves rounded up: 29.740000000000002 is 29.74, and 31.0 is 31."""
    return f"{rounded(points, PLACES):.{PLACES}f}".rstrip("0").rstrip(".")


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """Return the rows as CSV with commas, for a file in UTF-8."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()

"""A class's marks as the gradebook holds them: a person's marks and penalties for lateness count as nbgrader counts."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy.orm import Session

from .. import course
from ..errors import UserError
from . import database, entry, provenance
from .database import reading
from .entry import Entry, Shown
from .provenance import Provenance
from .roster import Enrolled


class NoMarks(UserError):
    """There are no marks of a unit; `str()` says what to do."""


@dataclass(frozen=True)
class Mark:
    """What one student has for a unit."""

    shown: Shown
    waiting: frozenset[str] = frozenset()
    """The grade cells that a person has still to mark, which count 0 until then."""
    late: timedelta = timedelta()
    """How long after the due date it came; zero if it was in time."""
    status: str = ""
    """How marking went, as in a report. This and what follows is empty where `autograder` did not give the mark."""
    submission: str = ""
    """SHA-256 of the file that the mark is about."""
    page: str = ""
    """The digest of what the student's feedback page shows."""
    timestamp: datetime | None = None
    """Submission time in UTC, as recorded in the gradebook."""

    @property
    def score(self) -> float:
        """With the penalty, never below 0."""
        return max(0.0, self.shown.score - self.shown.late_penalty)


@dataclass(frozen=True)
class UnitMarks:
    """Everyone's marks for a unit."""

    unit: str
    points: Mapping[str, float]
    """The most that each grade cell gives, in the notebook's order."""
    marks: Mapping[str, Mark]
    """By student, in the order of their ids; those without a submission in the gradebook have none."""
    students: Sequence[Enrolled]
    """Everyone in the gradebook, by id."""

    @property
    def max_score(self) -> float:
        """Written questions included."""
        return sum(self.points.values())


def of_units(root: Path, units: list[str]) -> list[UnitMarks]:
    """The marks in a course's gradebook. Raises UnknownUnit, NoMarks and CourseProblem."""
    for unit in units:
        course.unit(unit)
    with reading(root) as session:
        if session is None:
            raise NoMarks(f"Nothing is graded yet: there is no {database.of(root)}. Run `{_grade(units[0], root)}`.")
        for unit in units:
            if not entry.holds(session, unit):
                raise NoMarks(f"Nothing of {unit} is graded in {database.of(root)} yet. Run `{_grade(unit, root)}`.")
        return [unit_marks(session, unit) for unit in units]


def _grade(unit: str, root: Path) -> str:
    return shlex.join(["autograder", "grade", unit, "--course", str(root)])


def unit_marks(session: Session, unit: str) -> UnitMarks:
    """The marks of a unit that the gradebook knows."""
    cells = entry.cells(session, unit)
    in_order = [name for name in course.unit(unit).points if name in cells.points]
    in_order += [name for name in cells.points if name not in in_order]  # of the unit as it was
    kept = provenance.everyones(session)
    marks = {student: _mark(found, kept.get(found.id)) for student, found in entry.everyones(session, cells).items()}
    return UnitMarks(unit, {name: cells.points[name] for name in in_order}, marks, entry.students(session))


def _mark(found: Entry, kept: Provenance | None) -> Mark:
    about = (kept.status, kept.submission, kept.page) if kept else ("", "", "")
    return Mark(found.shown(), frozenset(found.waiting()), found.late, *about, found.timestamp)

"""A unit's marks as the gradebook holds them: a person's marks and penalties for lateness count as nbgrader counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Assignment, SubmittedAssignment
from sqlalchemy.orm import Session

from .. import course
from . import entry, provenance
from .class_gradebook import FILE, reading
from .entry import Shown


class NoMarks(Exception):
    """There are no marks of a unit; `str()` says what to do."""


@dataclass(frozen=True)
class Mark:
    """What one student has for a unit."""

    status: str
    """As in a report; `graded` where nbgrader's own command gave the mark."""
    shown: Shown
    waiting: tuple[str, ...]
    """The grade cells that a person has still to mark, which count 0 until then."""
    page: str
    """The digest of what the student's feedback page shows; empty if `autograder grade` did not write it."""

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
    """By student; those without a submission in the gradebook have none."""

    @property
    def max_score(self) -> float:
        """Written questions included."""
        return sum(self.points.values())


def of_units(root: Path, units: list[str]) -> list[UnitMarks]:
    """The marks in a course's gradebook. Raises UnknownUnit, NoMarks and CourseProblem."""
    for unit in units:
        course.unit(unit)
    if not (root / FILE).is_file():
        raise NoMarks(f"There are no marks yet: {root / FILE} is not there. `autograder grade {units[0]}` makes it.")
    with reading(root) as session:
        there = {name for (name,) in session.query(Assignment.name)}
        missing = [unit for unit in units if unit not in there]
        if missing:
            raise NoMarks(f"The gradebook {root / FILE} has no `{missing[0]}`: run `autograder grade {missing[0]}`.")
        return [_unit_marks(session, unit) for unit in units]


def _unit_marks(session: Session, unit: str) -> UnitMarks:
    cells = entry.cells(session, unit)
    in_order = [name for name in course.points(unit) if name in cells.points]
    in_order += [name for name in cells.points if name not in in_order]  # of the unit as it was
    submitted = session.query(SubmittedAssignment.student_id).filter_by(assignment_id=cells.assignment)
    has_provenance = provenance.is_kept(session)
    marks = {}
    for (student,) in submitted.order_by(SubmittedAssignment.student_id):
        found = entry.find(session, cells, student)
        if found is None:  # of another notebook in the assignment
            continue
        kept = provenance.find(session, found.id) if has_provenance else None
        status, page = (kept.status, kept.page) if kept else ("graded", "")
        marks[student] = Mark(status, found.shown(), tuple(found.waiting()), page)
    return UnitMarks(unit, {name: cells.points[name] for name in in_order}, marks)

"""Students' later due dates, in nbgrader's own column: the time from the unit's due date to the student's.

nbgrader stores an extension with the submission. Before a student's first submission, the row has no notebooks.
All code that counts or lists submissions ignores these rows. The row of a submission takes over the extension.
"""

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Gradebook, Student, SubmittedAssignment
from sqlalchemy.orm import Session

from ..course.late_penalty import duration
from ..course.notebook import printable
from ..errors import UserError
from . import nbgrader_course
from .nbgrader_course import course_directory, course_lock
from .roster import Enrolled, class_list
from .time_stamp import StampFormat, in_zone, time_in

_MOST_NAMED = 5


class BadExtension(UserError):
    """An extension cannot be given or removed; `str()` says why and what to do."""


@dataclass(frozen=True)
class Request:
    """An extension as the instructor writes it: one of the two texts is empty."""

    until: str = ""
    """The student's due date."""
    by: str = ""
    """The time from the unit's due date to the student's."""


@dataclass(frozen=True)
class DueDate:
    """A unit's due date."""

    utc: datetime
    zone: Any
    """The class's time zone."""

    def in_zone(self, extension: timedelta = timedelta()) -> str:
        """Return the due date, with an extension, as text in the class's time zone."""
        return in_zone(self.utc + extension, self.zone)

    def extension(self, request: Request) -> timedelta:
        """Return the extension that is requested. Raises BadExtension."""
        if bool(request.until) == bool(request.by):
            raise BadExtension('Give either until, such as "2026-12-03 18:00", or by, such as 2d.')
        if request.by:
            extension = duration(request.by)
            if not extension:
                raise BadExtension(
                    f"`{request.by}` is not an extension. Write days, hours or minutes: 2d, 36h, 1d 12h."
                )
            return extension
        until = time_in(request.until.encode(), StampFormat(self.zone))
        if until is None:
            raise BadExtension(
                f"`{request.until}` is not a date with a time, or a clock change in the class's time zone skips or "
                f"repeats this time. Write it like {self.in_zone()[:16]}, or add an offset: "
                f"{self.in_zone()[:16]} +0200."
            )
        if until <= self.utc:
            raise BadExtension(
                f"{self.in_zone(until - self.utc)} is not after the due date, {self.in_zone()}. Give a later date."
            )
        return until - self.utc


class Extensions:
    """The extensions of one unit in a course's gradebook."""

    def __init__(self, root: Path, unit: str, roster: Path | None = None, id_column: str | None = None) -> None:
        """Read the due date and the extensions. Raises BadExtension without a due date, BadRoster and CourseProblem."""
        self._root = root
        self._unit = unit
        self._directory = course_directory(root)
        self._database = nbgrader_course.database_of_directory(self._directory)
        people = class_list(root, roster, id_column)
        self._roster = people.roster
        self._students = {student.id: student for student in people.roster.students}
        self._known = people.enrolled | set(self._students)
        zone = StampFormat.of_course(self._directory).zone
        if zone is None:
            raise BadExtension("c.Exchange.timezone in nbgrader_config.py is not a time zone such as Europe/Berlin.")
        with self._database.reading() as session:
            due = session.query(Assignment.duedate).filter_by(name=unit).scalar() if session else None
            self.given: Mapping[str, timedelta] = of_unit(session, unit) if session else {}
            """Extensions by student, sorted by id."""
        if due is None:
            raise BadExtension(
                f"{unit} has no due date that could be extended. Set one: nbgrader db assignment add {unit} --duedate "
                '"2026-12-01 18:00".'
            )
        self.due = DueDate(due, zone)

    def refuse_unknown(self, students: Collection[str]) -> None:
        """Raise BadExtension if any of these students is neither on the roster nor in the gradebook."""
        unknown = [student for student in students if student not in self._known]
        if not unknown:
            return
        by_letters = {student.lower(): student for student in self._known}
        near = (difflib.get_close_matches(name.lower(), by_letters) for name in unknown)
        alike = {by_letters[letters] for names in near for letters in names}
        hint = f" Did you mean {_some(sorted(alike))}?" if alike else ""
        raise BadExtension(
            f"Neither on the roster nor in the gradebook: {_some(unknown)}.{hint} No extension was changed. Correct "
            "the id, or put the student on the roster."
        )

    def members(self, group: str) -> list[str]:
        """Return the students of a group on the roster. Raises BadExtension if there is no such group."""
        if members := self._roster.group(group):
            return members
        raise BadExtension(f"No student on the roster has `{printable(group)}` in the column `group`.")

    def extension(self, student: str, request: Request) -> timedelta:
        """Return the extension that is requested for a student. Raises BadExtension."""
        try:
            return self.due.extension(request)
        except BadExtension as reason:
            raise BadExtension(f"{printable(student)}: {reason} No extension was changed.") from None

    def put(self, extensions: Mapping[str, timedelta | None]) -> None:
        """Record these extensions in one transaction; None removes a student's extension. Raises CourseProblem."""
        with (
            course_lock(self._root),
            self._database.explained_errors(),
            closing(Gradebook(self._database.address, self._directory.course_id)) as gradebook,
        ):
            for student, extension in extensions.items():
                _put(gradebook.db, self._unit, self._students.get(student, Enrolled(student)), extension)
            gradebook.db.commit()


def _put(session: Session, unit: str, student: Enrolled, extension: timedelta | None) -> None:
    assignment = session.query(Assignment).filter_by(name=unit).one()
    submission = session.query(SubmittedAssignment).filter_by(assignment_id=assignment.id, student_id=student.id)
    row = submission.one_or_none()
    if row is None:
        if session.get(Student, student.id) is None:
            session.add(Student(**vars(student)))
        row = SubmittedAssignment(assignment_id=assignment.id, student_id=student.id)
        session.add(row)
    row.extension = extension
    session.flush()
    if extension is None and not row.notebooks:
        session.delete(row)


def of_unit(session: Session, unit: str) -> dict[str, timedelta]:
    """Return the extensions of a unit by student, sorted by id; also of students who have submitted nothing."""
    query = session.query(SubmittedAssignment.student_id, SubmittedAssignment.extension).join(Assignment)
    rows = query.filter(Assignment.name == unit, SubmittedAssignment.extension.is_not(None))
    return {student: extension for student, extension in sorted(map(tuple, rows)) if extension}


def take(session: Session, assignment: str, student: str) -> timedelta | None:
    """Remove the row of a student who had submitted nothing, and return its extension, for the row of a submission.

    assignment: the gradebook's id of the assignment. The result is None if there is no row to remove.
    """
    rows = session.query(SubmittedAssignment).filter_by(assignment_id=assignment, student_id=student)
    row = rows.filter(~SubmittedAssignment.notebooks.any()).one_or_none()
    if row is None:
        return None
    session.delete(row)
    session.flush()
    extension: timedelta | None = row.extension
    return extension


def due_dates(directory: Any, unit: str) -> Callable[[str], datetime | None]:
    """Return a function that returns a student's due date in UTC, extension included; None without a due date."""
    with nbgrader_course.database_of_program(directory).reading() as session:
        due = session.query(Assignment.duedate).filter_by(name=unit).scalar() if session else None
        extensions = of_unit(session, unit) if session else {}
    return lambda student: due and due + extensions.get(student, timedelta())


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(map(printable, names[:_MOST_NAMED])) + more

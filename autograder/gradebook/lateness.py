"""Lateness of a submission: its due date with the student's extension, its penalty in points, and both as text.

Grading, the dry run and all pages use it. The rule of the penalty is a setting: `course.settings`.

Extensions are in nbgrader's own column: the time from the unit's due date to the student's. nbgrader stores an
extension with the submission. Before a student's first submission, the row has no notebooks. All code that counts or
lists submissions ignores these rows. The row of a submission takes over the extension.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from nbgrader.api import Assignment, Student, SubmittedAssignment
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy.orm import Session

from .. import UserError
from ..course import settings
from ..course.notebook import list_names, printable
from ..course.settings import FILE, LatePenalty, duration
from . import nbgrader_course
from .nbgrader_course import CourseProblem, course_directory, writing
from .roster import Enrolled, class_list
from .time_stamp import StampFormat, in_zone, time_in


class LatePenalties:
    """The late submission plugin that the course's nbgrader_config.py names, or the autograder's own."""

    def __init__(self, directory: Any, gradebook: Any, unit: str) -> None:
        """directory, gradebook: nbgrader's CourseDirectory and Gradebook of the course.

        Raises CourseProblem if the plugin cannot be created, and BadSettings.
        """
        try:
            preprocessor = AssignLatePenalties(config=directory.config)
            preprocessor.gradebook, preprocessor.assignment_id = gradebook, unit  # as in nbgrader's own `preprocess`
            self._plugin = preprocessor.plugin_class(parent=preprocessor)
        except UserError:
            raise
        except Exception as error:  # the instructor's code, and its settings
            raise CourseProblem(f"The course's late submission plugin cannot be used: {_named(error)}.") from error
        rule = settings.of_late_penalty(Path(directory.root))
        self.has_late_days = bool(rule and rule.late_days)
        """True if penalties in one unit depend on the lateness in others."""
        if rule and not hasattr(self._plugin, "rule"):
            raise CourseProblem(
                f"{FILE} has a [late_penalty], and nbgrader_config.py names the plugin {type(self._plugin).__name__}, "
                "which does not use it. Delete one of the two settings."
            )

    def penalty(self, student: str, score: float, late: timedelta) -> float | None:
        """Return the points that a submission with this score loses, at most all of them; None for no penalty.

        Raises CourseProblem if the plugin fails.
        """
        if late <= timedelta():
            return None
        try:
            penalty = self._plugin.late_submission_penalty(student, score, late.total_seconds())
            if penalty is not None and not math.isfinite(penalty):
                raise ValueError(f"{penalty} is no penalty")
        except Exception as error:  # the instructor's code
            raise CourseProblem(
                f"The late submission plugin {type(self._plugin).__name__} failed for {printable(student)}: "
                f"{_named(error)}. Correct the plugin, and run the same command again."
            ) from error
        return None if penalty is None else min(max(float(penalty), 0.0), score)


def due(submission: Any) -> datetime | None:
    """Return the due date with the submission's extension; None without a due date (nbgrader raises TypeError then)."""
    return submission.duedate if submission.assignment.duedate else None


def is_past_due(submission: Any) -> bool:
    """Return whether the due date with the submission's extension has passed; False without a due date."""
    date = due(submission)
    return date is not None and datetime.now(UTC).replace(tzinfo=None) > date


def lateness(submission: Any) -> timedelta:
    """Return the time between the due date and the submission; zero if in time, or if either time is unknown."""
    return timedelta(seconds=submission.total_seconds_late if due(submission) else 0)


class LateDays(NamedTuple):
    """A student's late days in a unit."""

    spent: int
    """Late days that the submission uses up."""
    left: int
    """Late days that remain after it, for units that are due later."""


def late_days(session: Session, rule: LatePenalty, unit: str, student: str | None = None) -> dict[str, LateDays]:
    """Return the late days of everyone in the gradebook, or of one student; empty if the unit has no due date.

    Late days are spent in the order of the students' due dates. Submissions that are not graded yet take none.
    """
    date = session.query(Assignment.duedate).filter_by(name=unit).scalar()
    if date is None:
        return {}
    students = session.query(Student.id)
    submissions = session.query(SubmittedAssignment).join(Assignment).filter(Assignment.duedate.is_not(None))
    if student is not None:
        students = students.filter_by(id=student)
        submissions = submissions.filter(SubmittedAssignment.student_id == student)
    by_student: dict[str, list[Any]] = {name: [] for (name,) in students}
    for submission in submissions:
        by_student[submission.student_id].append(submission)
    return {name: _late_days(rule, (date, unit), of_student) for name, of_student in by_student.items()}


def _late_days(rule: LatePenalty, unit: tuple[datetime, str], submissions: list[Any]) -> LateDays:
    """Return one student's late days. unit: its due date and name. submissions: the student's, with due dates."""
    in_order = sorted((submission.duedate, submission.name, lateness(submission)) for submission in submissions)
    last = next((its[:2] for its in in_order if its[1] == unit[1]), unit)
    days = LateDays(0, rule.late_days)
    for date, name, late in in_order:
        if (date, name) <= last:
            spent = rule.days_spent(late, days.left)
            days = LateDays(spent if name == unit[1] else 0, days.left - spent)
    return days


def exactly(duration: timedelta) -> str:
    """Return a duration as exact text, such as `1 day 12 hours`; empty for zero."""
    words, rest = [], duration
    for unit in ("days", "hours", "minutes", "seconds"):
        count, rest = divmod(rest, timedelta(**{unit: 1}))
        words += [f"{count} {unit.removesuffix('s') if count == 1 else unit}"] if count else []
    return " ".join(words)


def in_words(late: timedelta) -> str:
    """Return a delay as text, rounded up: to minutes, from two hours on to hours, from two days on to days."""
    for unit, seconds in (("days", 86_400), ("hours", 3_600)):
        if late.total_seconds() >= 2 * seconds:
            return f"{math.ceil(late.total_seconds() / seconds)} {unit}"
    minutes = math.ceil(late.total_seconds() / 60)
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {printable(' '.join(str(error).split())).removesuffix('.')}"


class Deadline(msgspec.Struct, frozen=True):
    """A student's due date in a unit, and the delay of the submission. Texts are empty if there is no due date."""

    due: str = ""
    """The due date with the extension, in the class's time zone, such as `2026-12-03 18:00 CET`."""
    extension: str = ""
    """The extension, such as `2 days`; empty without one."""
    late: str = ""
    """The delay, such as `15 minutes`; empty if the submission was in time, or if its time is unknown."""
    days_spent: int = 0
    """The late days that the submission takes."""
    days_left: int | None = None
    """The late days that are left after it; None if the class has none, or the unit has no due date."""
    days_of_class: int = 0
    """The late days that each student of the class has in all units together."""


@dataclass(frozen=True)
class Deadlines:
    """A class's time zone, and its rule for late submissions."""

    zone: tzinfo | None
    rule: LatePenalty | None

    @classmethod
    def of_course(cls, directory: Any) -> "Deadlines":
        """Read both from a course's settings. directory: nbgrader's CourseDirectory. Raises BadSettings."""
        return cls(StampFormat.of_course(directory).zone, settings.of_late_penalty(Path(directory.root)))

    @property
    def late_days(self) -> int:
        """The late days that each student has in all units together."""
        return self.rule.late_days if self.rule else 0

    def days_of(self, session: Session, unit: str, student: str | None = None) -> Mapping[str, LateDays]:
        """Return the late days of everyone, or of one student, in a unit; empty if the class has no late days."""
        return late_days(session, self.rule, unit, student) if self.rule and self.late_days else {}

    def of(self, submission: Any, days: LateDays | None) -> Deadline:
        """Return the deadline of one of nbgrader's submissions. days: the student's late days in the unit."""
        date = due(submission)
        if date is None:
            return Deadline()
        extension, late = exactly(submission.extension or timedelta()), lateness(submission)
        deadline = Deadline(in_zone(date, self.zone), extension, in_words(late) if late else "")
        if days is None:
            return deadline
        return msgspec.structs.replace(
            deadline, days_spent=days.spent, days_left=days.left, days_of_class=self.late_days
        )


class BadExtension(UserError):
    """An extension cannot be given or removed; `str()` says why and what to do."""


class Extensions:
    """The due date and the extensions of one unit in a course's gradebook."""

    def __init__(self, root: Path, unit: str, roster: Path | None = None, id_column: str | None = None) -> None:
        """Read the due date and the extensions. Raises BadExtension without a due date, BadRoster and CourseProblem."""
        self._root = root
        self._unit = unit
        directory = course_directory(root)
        people = class_list(root, roster, id_column)
        self._roster = people.roster
        self._students = {student.id: student for student in people.roster.students}
        self._known = people.enrolled | set(self._students)
        self._zone = StampFormat.of_course(directory).zone
        if self._zone is None:
            raise BadExtension("c.Exchange.timezone in nbgrader_config.py is not a time zone such as Europe/Berlin.")
        with nbgrader_course.database_of_directory(directory).reading() as session:
            due = session.query(Assignment.duedate).filter_by(name=unit).scalar() if session else None
            self.given: Mapping[str, timedelta] = extensions_of_unit(session, unit) if session else {}
            """Extensions by student, sorted by id."""
        if due is None:
            raise BadExtension(
                f"{unit} has no due date that could be extended. Set one: nbgrader db assignment add {unit} --duedate "
                '"2026-12-01 18:00".'
            )
        self._due: datetime = due

    def due(self, extension: timedelta = timedelta()) -> str:
        """Return the due date, with an extension, as text in the class's time zone."""
        return in_zone(self._due + extension, self._zone)

    def refuse_unknown(self, students: Collection[str]) -> None:
        """Raise BadExtension if any of these students is neither on the roster nor in the gradebook."""
        if unknown := [student for student in students if student not in self._known]:
            raise BadExtension(
                f"Neither on the roster nor in the gradebook: {list_names(unknown)}. No extension was changed. Correct "
                "the id, or put the student on the roster."
            )

    def members(self, group: str) -> list[str]:
        """Return the students of a group on the roster. Raises BadExtension if there is no such group."""
        if members := self._roster.group(group):
            return members
        raise BadExtension(f"No student on the roster has `{printable(group)}` in the column `group`.")

    def extension(self, student: str, until: str, by: str) -> timedelta:
        """Return the extension that an instructor writes as a date or as a time. Raises BadExtension.

        until: the student's due date. by: the time from the unit's due date to the student's. One of the two is empty.
        """
        extension: timedelta | None = duration(by) if by else None
        problem = ""
        if bool(until) == bool(by):
            problem = 'Give either until, such as "2026-12-03 18:00", or by, such as 2d.'
        elif by:
            problem = "" if extension else f"`{by}` is not an extension. Write days, hours or minutes: 2d, 36h, 1d 12h."
        elif (moment := time_in(until.encode(), StampFormat(self._zone))) is None:
            problem = (
                f"`{until}` is not a date with a time, or a clock change in the class's time zone skips or repeats "
                f"this time. Write it like {self.due()[:16]}, or add an offset: {self.due()[:16]} +0200."
            )
        else:
            extension = moment - self._due
            if extension <= timedelta():
                problem = f"{self.due(extension)} is not after the due date, {self.due()}. Give a later date."
        if problem or extension is None:
            raise BadExtension(f"{printable(student)}: {problem} No extension was changed.")
        return extension

    def put(self, extensions: Mapping[str, timedelta | None]) -> None:
        """Record these extensions in one transaction; None removes a student's extension. Raises CourseProblem."""
        with writing(self._root) as session:
            for student, extension in extensions.items():
                _put_extension(session, self._unit, self._students.get(student, Enrolled(student)), extension)


def _put_extension(session: Session, unit: str, student: Enrolled, extension: timedelta | None) -> None:
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


def extensions_of_unit(session: Session, unit: str) -> dict[str, timedelta]:
    """Return the extensions of a unit by student, sorted by id; also of students who have submitted nothing."""
    query = session.query(SubmittedAssignment.student_id, SubmittedAssignment.extension).join(Assignment)
    rows = query.filter(Assignment.name == unit, SubmittedAssignment.extension.is_not(None))
    return {student: extension for student, extension in sorted(map(tuple, rows)) if extension}


def take_extension(session: Session, assignment: str, student: str) -> timedelta | None:
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
        extensions = extensions_of_unit(session, unit) if session else {}
    return lambda student: due and due + extensions.get(student, timedelta())

"""One student's entry in nbgrader's gradebook: the grades and comments of one submission, and who is in the class."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from nbgrader import utils
from nbgrader.api import (
    Assignment,
    Comment,
    Grade,
    GradeCell,
    Notebook,
    SolutionCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy.orm import Session

from .. import course
from ..report import Report
from .lateness import LatePenalties, due, lateness, record_time, unresolved_stamp, unresolved_stamps
from .roster import Enrolled
from .time_stamp import SubmissionTime

_AT_ONCE = 500
"""Rows of a large class that are in memory together."""


@dataclass(frozen=True)
class Cells:
    """A unit's cells in the gradebook, by the gradebook's own ids."""

    assignment: str
    notebook: str
    graded: dict[str, str]
    """The grade cells' names."""
    answered: dict[str, str]
    """The solution cells' names."""
    points: dict[str, float]
    """By the grade cells' names."""


class Shown(msgspec.Struct):
    """What a feedback page shows of an entry: a person's score and comment if there is one, else the automatic one."""

    scores: dict[str, float]
    comments: dict[str, str | None]
    points: dict[str, float]
    late_penalty: float
    waiting: list[str] = []
    """The cells that a person has still to mark."""
    is_time_unresolved: bool = False
    """True if there is a time stamp that does not determine the submission time."""
    blank: list[str] = []
    """The written answers that no person graded, because nothing is written in them."""

    @property
    def score(self) -> float:
        """Before the penalty."""
        return sum(self.scores.values())

    @property
    def max_score(self) -> float:
        return sum(self.points.values())

    @property
    def digest(self) -> str:
        """Identifies the page's content."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


@dataclass(frozen=True)
class Times:
    """Of a student's submission, in UTC; None where there is none."""

    handed_in: datetime | None
    due: datetime | None
    """Extensions included."""


class Entry:
    """The grades and comments of one student's submission, in the session that holds them."""

    def __init__(
        self,
        cells: Cells,
        submission: Any,
        notebook: Any,
        grades: Iterable[Any],
        comments: Iterable[Any],
        unresolved: str | None = None,
    ) -> None:
        """unresolved: the text of a time stamp that does not determine when the submission came."""
        self.unresolved = unresolved
        self._cells = cells
        self._submission = submission
        self._notebook = notebook
        # In the order of the names: databases have none of their own.
        self._grades = _by_name(cells.graded, grades)
        self._comments = _by_name(cells.answered, comments)

    @property
    def id(self) -> str:
        """The gradebook's id of the submitted notebook."""
        return str(self._notebook.id)

    @property
    def timestamp(self) -> datetime | None:
        """When it was handed in, as the gradebook has it."""
        found: datetime | None = self._submission.timestamp
        return found

    @property
    def late(self) -> timedelta:
        """Time between the due date and the submission; zero if it was in time."""
        return lateness(self._submission)

    def automatic_scores(self) -> dict[str, float | None]:
        """By grade cell; None where a person has to mark."""
        return {name: grade.auto_score for name, grade in self._grades.items()}

    def waiting(self) -> list[str]:
        """The grade cells that a person has still to mark: written answers, and where our own fault left no mark."""
        return [n for n, grade in self._grades.items() if grade.needs_manual_grade and grade.manual_score is None]

    def put_time(self, session: Session, time: SubmissionTime, *, is_same_file: bool) -> None:
        """Records when the submission came. is_same_file: whether it is the file that was graded before."""
        record_time(session, self._notebook, time, is_same_file=is_same_file)
        self.unresolved = time.unresolved

    def put(self, notebook: Any, report: Report) -> None:
        """Takes the scores and comments from the marked notebook, by nbgrader's rules; what people gave is kept.

        Where one of our graders failed there is no score, but a request that a person look at it.
        """
        has_no_mark = unmarked(report)
        for cell in notebook.cells:
            about = cell.metadata.get("nbgrader", {})
            if utils.is_grade(cell):
                grade = self._grades[about["grade_id"]]
                grade.auto_score = None if has_no_mark(about["grade_id"]) else utils.determine_grade(cell)[0]
                grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
            if utils.is_solution(cell):
                unchanged = about.get("checksum") == utils.compute_checksum(cell)
                self._comments[about["grade_id"]].auto_comment = "No response." if unchanged else None

    def penalise(self, penalties: LatePenalties) -> bool:
        """Sets the penalty that the submission costs now for being late; returns whether that changes its points."""
        before = self.shown()
        penalty = penalties.penalty(str(self._submission.student_id), before.score, self.late)
        self._notebook.late_submission_penalty = penalty
        return (penalty or 0.0) != before.late_penalty

    def shown(self) -> Shown:
        """What the feedback page says about it."""
        return Shown(
            {name: _score(grade) for name, grade in self._grades.items()},
            {name: _comment(found) for name, found in self._comments.items()},
            self._cells.points,
            self._notebook.late_submission_penalty or 0.0,
            [name for name, grade in self._grades.items() if grade.auto_score is None and grade.manual_score is None],
            self.unresolved is not None,
            [name for name, grade in self._grades.items() if is_blank(name, grade)],
        )


def cells(session: Session, unit: str) -> Cells:
    """The unit's cells, once the gradebook knows the unit."""
    notebook = _notebooks(session, unit).one()
    graded, answered = (
        sorted(session.query(kind).filter(kind.notebook_id == notebook.id), key=lambda cell: str(cell.name))
        for kind in (GradeCell, SolutionCell)
    )
    return Cells(
        notebook.assignment_id,
        notebook.id,
        {cell.id: cell.name for cell in graded},
        {cell.id: cell.name for cell in answered},
        {cell.name: cell.max_score for cell in graded},
    )


def find(session: Session, cells: Cells, student: str) -> Entry | None:
    """The student's entry, if there is one."""
    found = _submitted(session, cells).filter(SubmittedAssignment.student_id == student).one_or_none()
    if found is None:
        return None
    submission, notebook = found
    # The tables' only index begins with the cell: without it every query would go through the marks of the whole class.
    grades, comments = (
        session.query(kind).filter(kind.notebook_id == notebook.id, kind.cell_id.in_(names))
        for kind, names in ((Grade, cells.graded), (Comment, cells.answered))
    )
    return Entry(cells, submission, notebook, grades, comments, unresolved_stamp(session, notebook.id))


def everyones(session: Session, cells: Cells) -> dict[str, Entry]:
    """All entries of the unit, to read, by student in the order of the ids, in three queries.

    Grades and comments are the rows themselves: SQLAlchemy's objects of a large class would take gigabytes.
    """
    submitted = sorted(_submitted(session, cells), key=lambda row: str(row[0].student_id))
    grades: dict[str, list[Any]] = defaultdict(list)
    comments: dict[str, list[Any]] = defaultdict(list)
    for kind, held in ((Grade, grades), (Comment, comments)):
        rows = session.query(*kind.__table__.columns).join(SubmittedNotebook, SubmittedNotebook.id == kind.notebook_id)
        for one in rows.filter(SubmittedNotebook.notebook_id == cells.notebook):
            held[one.notebook_id].append(one)
    unresolved = unresolved_stamps(session)
    return {
        submission.student_id: Entry(
            cells, submission, notebook, grades[notebook.id], comments[notebook.id], unresolved.get(notebook.id)
        )
        for submission, notebook in submitted
    }


def new(session: Session, cells: Cells, student: str) -> Entry:
    """An empty entry, which reaches the gradebook only when it is committed together with its marks.

    nbgrader's own `add_submission` commits it without them: a run that ended then would leave an empty entry.
    """
    submission = SubmittedAssignment(assignment_id=cells.assignment, student_id=student)
    notebook = SubmittedNotebook(notebook_id=cells.notebook, assignment=submission)
    grades = [Grade(cell_id=cell, notebook=notebook) for cell in cells.graded]
    comments = [Comment(cell_id=cell, notebook=notebook) for cell in cells.answered]
    session.add(submission)
    session.flush()
    return Entry(cells, submission, notebook, grades, comments)


def graded(session: Session, unit: str) -> int:
    """How many students have an entry for the unit."""
    found = session.query(SubmittedAssignment).join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
    return int(found.filter(Assignment.name == unit).count())


def waiting(session: Session, cells: Cells) -> int:
    """How many written answers are waiting for a person."""
    written = [cell for cell, name in cells.graded.items() if not name.startswith(course.CHECK_PREFIX)]
    grades = session.query(Grade).filter(Grade.cell_id.in_(written), Grade.needs_manual_grade)
    return int(grades.filter(Grade.manual_score.is_(None)).count())


def times(session: Session, cells: Cells) -> dict[str, Times]:
    """When everyone who is marked handed the unit in, and when it is due for them."""
    submissions = session.query(SubmittedAssignment).filter(SubmittedAssignment.assignment_id == cells.assignment)
    return {one.student_id: Times(one.timestamp, due(one)) for one in submissions.yield_per(_AT_ONCE)}


def late(session: Session, cells: Cells) -> dict[str, timedelta]:
    """Return the delay of each late submission of the unit, by student."""
    handed_in = session.query(SubmittedAssignment).filter(
        SubmittedAssignment.assignment_id == cells.assignment, SubmittedAssignment.timestamp.is_not(None)
    )
    delays = {one.student_id: lateness(one) for one in handed_in.yield_per(_AT_ONCE)}
    return {student: delay for student, delay in delays.items() if delay}


def penalised(session: Session, cells: Cells) -> dict[str, float]:
    """Return the points deducted for late submission of the unit, by student."""
    found = _submitted(session, cells).filter(SubmittedNotebook.late_submission_penalty > 0)
    return {submission.student_id: notebook.late_submission_penalty for submission, notebook in found}


def unresolved(session: Session, cells: Cells) -> dict[str, str]:
    """Return the text of each time stamp that does not determine a time, by student."""
    stamps = unresolved_stamps(session)
    found = session.query(SubmittedNotebook).filter(SubmittedNotebook.notebook_id == cells.notebook) if stamps else []
    return {one.assignment.student_id: stamps[one.id] for one in found if one.id in stamps}


def students(session: Session) -> list[Enrolled]:
    """Everyone in the gradebook, by id."""
    found = session.query(Student.id, Student.first_name, Student.last_name, Student.email)
    return sorted((Enrolled(*one) for one in found), key=lambda one: one.id)  # servers sort by rules of a language


def holds(session: Session, unit: str) -> bool:
    """Whether the gradebook knows the unit."""
    return _notebooks(session, unit).first() is not None


def _submitted(session: Session, cells: Cells) -> Any:
    return (
        session.query(SubmittedAssignment, SubmittedNotebook)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .filter(SubmittedAssignment.assignment_id == cells.assignment, SubmittedNotebook.notebook_id == cells.notebook)
    )


def _notebooks(session: Session, unit: str) -> Any:
    return (
        session.query(Notebook)
        .join(Assignment, Assignment.id == Notebook.assignment_id)
        .filter(Assignment.name == unit, Notebook.name == unit)
    )


def _by_name(names: dict[str, str], held: Iterable[Any]) -> dict[str, Any]:
    return {names[one.cell_id]: one for one in sorted(held, key=lambda one: names[one.cell_id])}


def _score(grade: Any) -> float:
    """By nbgrader's rule, which nbgrader itself evaluates in the database."""
    given = grade.manual_score if grade.manual_score is not None else grade.auto_score
    return 0.0 if given is None else given + (grade.extra_credit or 0.0)


def _comment(found: Any) -> str | None:
    given: str | None = found.auto_comment if found.manual_comment is None else found.manual_comment
    return given


def is_blank(name: str, grade: Any) -> bool:
    """Return whether a grade is that of a written answer which is blank, so that nbgrader gave 0 itself."""
    return not name.startswith(course.CHECK_PREFIX) and grade.auto_score is not None and grade.manual_score is None


def unmarked(report: Report) -> Callable[[str], bool]:
    """Tells whether our own fault left the grade cell of a name without a mark: nbgrader would make it a zero."""
    failed = {course.CHECK_PREFIX + e.name for e in report.exercises if e.status == "grader_error"}
    nothing = report.status == "grader_error" and not report.exercises
    return lambda name: name in failed or (nothing and name.startswith(course.CHECK_PREFIX))

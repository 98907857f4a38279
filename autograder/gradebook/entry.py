"""One student's entry in nbgrader's gradebook: the grades and comments of one submission."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass
from datetime import datetime, timedelta
from functools import partial
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
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy.orm import Session

from .. import course
from ..report import Report
from . import records, reweights
from .lateness import Deadline, Deadlines, LateDays, LatePenalties, is_past_due, lateness, take_extension
from .records import Provenance, Reading
from .time_stamp import SubmissionTime


@dataclass(frozen=True)
class Cells:
    """A unit's cells in the gradebook, by the gradebook's own ids."""

    assignment: str
    notebook: str
    graded: dict[str, str]
    """Names of the grade cells, by id."""
    answered: dict[str, str]
    """Names of the solution cells, by id."""
    points: dict[str, float]
    """Maximum scores of the grade cells, by name."""
    rules: reweights.Rules
    """Rules for exercises that count other points than they were released with."""


class Shown(msgspec.Struct):
    """Content of a feedback page: of each cell a person's score and comment if there is one, else the automatic one."""

    scores: dict[str, float]
    comments: dict[str, str | None]
    points: dict[str, float]
    late_penalty: float
    waiting: list[str] = []
    """The cells that a person has still to grade."""
    is_time_unresolved: bool = False
    """True if there is a time stamp that does not determine the submission time."""
    blank: list[str] = []
    """The written answers that no person graded, because nothing is written in them."""
    is_past_due: bool = False
    """True if the due date with the student's extension has passed: the page then shows the edits of repairs."""
    deadline: Deadline = Deadline()
    """The student's due date, and the delay of the submission."""
    reweighted: list[str] = []
    """Sentences on exercises that count other points than they were released with."""

    @property
    def score(self) -> float:
        """The score before the penalty."""
        return sum(self.scores.values())

    @property
    def max_score(self) -> float:
        """The maximum score, written questions included."""
        return sum(self.points.values())

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def put_into(self, notebook: Any) -> dict[str, Any]:
        """Put scores and comments into the cells of a graded notebook; return the variables of the page's template."""
        for cell in notebook.cells:
            about = cell.metadata.get("nbgrader", {})
            if utils.is_solution(cell):
                about["comment"] = self.comments[about["grade_id"]]
            if utils.is_grade(cell):
                about["score"] = self.scores[about["grade_id"]]
                about["points"] = self.points[about["grade_id"]]
                about["waiting"] = about["grade_id"] in self.waiting
                about["blank"] = about["grade_id"] in self.blank
        return {
            "score": self.score - self.late_penalty,
            "max_score": self.max_score,
            **{name: getattr(self, name) for name in ("late_penalty", "is_time_unresolved", "deadline", "reweighted")},
        }


@dataclass(eq=False)
class Entry:
    """The grades and comments of one student's submission, in an open database session."""

    _session: Session
    _cells: Cells
    _submission: Any
    _notebook: Any
    grades: InitVar[Iterable[Any]]
    comments: InitVar[Iterable[Any]]
    unresolved: str | None
    """The text of a time stamp that does not determine the submission time; None if there is no such stamp."""
    _deadline: Callable[[], Deadline]
    """Returns the deadline as it is now."""

    def __post_init__(self, grades: Iterable[Any], comments: Iterable[Any]) -> None:
        self._grades = _by_name(self._cells.graded, grades)
        self._comments = _by_name(self._cells.answered, comments)

    @property
    def id(self) -> str:
        """The gradebook's id of the submitted notebook."""
        return str(self._notebook.id)

    @property
    def timestamp(self) -> datetime | None:
        """Submission time in UTC, as recorded in the gradebook."""
        time: datetime | None = self._submission.timestamp
        return time

    @property
    def late(self) -> timedelta:
        """Time between the due date and the submission; zero if it was in time."""
        return lateness(self._submission)

    def automatic_scores(self) -> dict[str, float | None]:
        """Return the autograder's scores by grade cell; None if a person has to grade the cell."""
        return {name: grade.auto_score for name, grade in self._grades.items()}

    def waiting(self) -> list[str]:
        """Return the cells that a person has still to grade: written answers, and cells ungraded by our own fault."""
        return [n for n, grade in self._grades.items() if grade.needs_manual_grade and grade.manual_score is None]

    def manual_score(self, question: str) -> float | None:
        """Return the points that a person gave for a written answer; None if nobody gave any."""
        score: float | None = self._grades[question].manual_score
        return score

    def grade_by_hand(self, question: str, points: float, comment: str) -> bool:
        """Record a person's points and comment for a written answer, as formgrader does; return whether any is new.

        The comment may be empty. It is added to an earlier one.
        """
        grade, row = self._grades[question], self._comments[question]
        is_new = bool(grade.manual_score != points)
        grade.manual_score, grade.needs_manual_grade = points, False
        if comment in (row.manual_comment or ""):
            return is_new
        row.manual_comment = "\n\n".join(filter(None, (row.manual_comment, comment)))
        return True

    def readings(self) -> dict[str, Reading]:
        """Return the readers of the written answers, by question."""
        return records.readings(self._session, self._notebook.id)

    def put_reading(self, question: str, reading: Reading) -> None:
        """Record who reads a written answer, and the points from the reader's sheet."""
        records.put_reading(self._session, self._notebook.id, question, reading)

    @property
    def provenance(self) -> Provenance | None:
        """Provenance of the grade; None if `autograder grade` did not give it."""
        return records.provenance(self._session, self._notebook.id)

    def put_provenance(self, provenance: Provenance) -> None:
        """Record the provenance of the grade."""
        records.put_provenance(self._session, self._notebook.id, provenance)

    def put_time(self, time: SubmissionTime, submission: str) -> None:
        """Record the submission time, or that the time stamp does not determine it.

        A file without a stamp keeps its earlier time if it has not changed: instructors may set that time themselves.
        submission: SHA-256 of the file, whose provenance is recorded later.
        """
        before = self.provenance
        if time != SubmissionTime() or (before and before.submission != submission):
            self._submission.timestamp = time.utc
        records.put_unresolved_stamp(self._session, self._notebook.id, time.unresolved)
        self.unresolved = time.unresolved

    def put(self, notebook: Any, report: Report) -> None:
        """Take the scores and comments from a graded notebook by nbgrader's rules; keep those that people gave.

        A cell whose hidden tests failed by our fault gets no score, and is left for a person to grade. By nbgrader's
        rules a person has to read again what a person graded, but not if the file is the one that was graded.
        """
        before = self.provenance
        is_same_file = before is not None and before.submission == report.submission != ""
        has_no_mark = unmarked(report)
        for cell in notebook.cells:
            about = cell.metadata.get("nbgrader", {})
            if utils.is_grade(cell):
                grade = self._grades[about["grade_id"]]
                grade.auto_score = None if has_no_mark(about["grade_id"]) else utils.determine_grade(cell)[0]
                if grade.manual_score is None:
                    grade.needs_manual_grade = grade.auto_score is None
                elif not is_same_file:
                    grade.needs_manual_grade = True
            if utils.is_solution(cell):
                unchanged = about.get("checksum") == utils.compute_checksum(cell)
                self._comments[about["grade_id"]].auto_comment = "No response." if unchanged else None

    def reweight(self) -> bool:
        """Apply the class's changes of points to the scores that people gave; return whether these changes are new."""
        rules, text = self._cells.rules, records.counted(self._session, self.id)
        before, counted = _counted(text), dict[str, reweights.CountedScore]()
        for name in sorted({*before, *rules}):
            if grade := self._grades.get(course.CHECK_PREFIX + name):
                score, record = reweights.count_by_hand(grade.manual_score, before.get(name), rules.get(name))
                grade.manual_score = score
                counted |= {name: record} if record else {}
        if counted != before:
            records.put_counted(self._session, self.id, msgspec.json.encode(counted).decode() if counted else None)
        return not counts_by(text, self._cells)

    def penalise(self, penalties: LatePenalties) -> bool:
        """Set the penalty for late submission as it is now; return whether that changes the points."""
        before, penalty = self.shown().late_penalty, self.penalty(penalties)
        self._notebook.late_submission_penalty = penalty
        return (penalty or 0.0) != before

    def penalty(self, penalties: LatePenalties) -> float | None:
        """Return the present penalty for late submission; None without a penalty."""
        return penalties.penalty(str(self._submission.student_id), self.shown().score, self.late)

    def shown(self) -> Shown:
        """Return the content of the feedback page."""
        return Shown(
            {name: _score(grade) for name, grade in self._grades.items()},
            {
                name: comment.auto_comment if comment.manual_comment is None else comment.manual_comment
                for name, comment in self._comments.items()
            },
            self._cells.points,
            self._notebook.late_submission_penalty or 0.0,
            [name for name, grade in self._grades.items() if grade.auto_score is None and grade.manual_score is None],
            self.unresolved is not None,
            [name for name, grade in self._grades.items() if _is_blank(name, grade)],
            is_past_due(self._submission),
            self._deadline(),
            [rule.sentence(exercise) for exercise, rule in self._cells.rules.items()],
        )


def counts_by(scores: str | None, cells: Cells) -> bool:
    """Return whether a submission counts by the rules of the unit. scores: its record, see `records.counted`."""
    rules = {name: rule for name, rule in cells.rules.items() if course.CHECK_PREFIX + name in cells.points}
    return {name: its.rule for name, its in _counted(scores).items()} == rules


def _counted(scores: str | None) -> dict[str, reweights.CountedScore]:
    return msgspec.json.decode(scores, type=dict[str, reweights.CountedScore]) if scores else {}


def find_cells(session: Session, unit: str) -> Cells | None:
    """Return the unit's cells; None if the gradebook does not know the unit."""
    notebooks = session.query(Notebook).join(Assignment, Assignment.id == Notebook.assignment_id)
    notebook = notebooks.filter(Assignment.name == unit, Notebook.name == unit).one_or_none()
    if notebook is None:
        return None
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
        reweights.of_unit(session, unit),
    )


def find_entry(session: Session, unit: str, cells: Cells, student: str, deadlines: Deadlines) -> Entry | None:
    """Return the student's entry, if there is one."""
    row = _submitted(session, cells).filter(SubmittedAssignment.student_id == student).one_or_none()
    if row is None:
        return None
    submission, notebook = row
    # The tables' only index begins with the cell: without it every query would go through the whole class's grades.
    grades, comments = (
        session.query(kind).filter(kind.notebook_id == notebook.id, kind.cell_id.in_(names))
        for kind, names in ((Grade, cells.graded), (Comment, cells.answered))
    )
    unresolved = records.unresolved_stamp(session, notebook.id)
    deadline = _deadline_of_one(session, deadlines, unit, submission)
    return Entry(session, cells, submission, notebook, grades, comments, unresolved, deadline)


def all_entries(session: Session, cells: Cells, deadlines: Deadlines, days: Mapping[str, LateDays]) -> dict[str, Entry]:
    """Return all entries of the unit, only for reading, sorted by the student's id. Takes three queries.

    days: late days by student. The entries hold plain rows: SQLAlchemy's objects of a large class would take gigabytes.
    """
    submitted = sorted(_submitted(session, cells), key=lambda row: str(row[0].student_id))
    grades: dict[str, list[Any]] = defaultdict(list)
    comments: dict[str, list[Any]] = defaultdict(list)
    for kind, by_notebook in ((Grade, grades), (Comment, comments)):
        query = session.query(*kind.__table__.columns).join(SubmittedNotebook, SubmittedNotebook.id == kind.notebook_id)
        for row in query.filter(SubmittedNotebook.notebook_id == cells.notebook):
            by_notebook[row.notebook_id].append(row)
    unresolved = records.unresolved_stamps(session)
    return {
        submission.student_id: Entry(
            session, cells, submission, its, grades[its.id], comments[its.id], unresolved.get(its.id),
            partial(deadlines.of, submission, days.get(submission.student_id)),
        )
        for submission, its in submitted
    }  # fmt: skip


def new_entry(session: Session, unit: str, cells: Cells, student: str, deadlines: Deadlines) -> Entry:
    """Return an empty entry for a student without an entry; the caller commits it together with its grades.

    The entry takes over the extension that the student was given. nbgrader's own `add_submission` commits the entry at
    once: a run that ended then would leave it empty.
    """
    extension = take_extension(session, cells.assignment, student)
    submission = SubmittedAssignment(assignment_id=cells.assignment, student_id=student, extension=extension)
    notebook = SubmittedNotebook(notebook_id=cells.notebook, assignment=submission)
    grades = [Grade(cell_id=cell, notebook=notebook) for cell in cells.graded]
    comments = [Comment(cell_id=cell, notebook=notebook) for cell in cells.answered]
    session.add(submission)
    session.flush()
    deadline = _deadline_of_one(session, deadlines, unit, submission)
    return Entry(session, cells, submission, notebook, grades, comments, None, deadline)


def _deadline_of_one(session: Session, deadlines: Deadlines, unit: str, submission: Any) -> Callable[[], Deadline]:
    """Return a function that reads the late days when it is called, because a new submission time may change them."""
    student = submission.student_id
    return lambda: deadlines.of(submission, deadlines.days_of(session, unit, student).get(student))


def _submitted(session: Session, cells: Cells) -> Any:
    return (
        session.query(SubmittedAssignment, SubmittedNotebook)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .filter(SubmittedAssignment.assignment_id == cells.assignment, SubmittedNotebook.notebook_id == cells.notebook)
    )


def _by_name(names: dict[str, str], rows: Iterable[Any]) -> dict[str, Any]:
    """Return the rows by their cells' names, sorted, because databases return rows in any order."""
    return {names[row.cell_id]: row for row in sorted(rows, key=lambda row: names[row.cell_id])}


def _score(grade: Any) -> float:
    """Return the score by nbgrader's rule, which nbgrader itself evaluates in the database."""
    score = grade.manual_score if grade.manual_score is not None else grade.auto_score
    return 0.0 if score is None else score + (grade.extra_credit or 0.0)


def _is_blank(name: str, grade: Any) -> bool:
    """Return whether a grade is that of a blank written answer, to which nbgrader itself gave 0."""
    return not name.startswith(course.CHECK_PREFIX) and grade.auto_score is not None and grade.manual_score is None


def unmarked(report: Report) -> Callable[[str], bool]:
    """Return a predicate on names of grade cells: true if our own fault left the cell ungraded.

    nbgrader would give an ungraded cell 0.
    """
    is_by_rule = {e.name: bool(e.reweighted and e.reweighted.kind != "points") for e in report.exercises}
    failed = {e.name for e in report.exercises if e.status == "grader_error" and not is_by_rule[e.name]}
    nothing = report.status == "grader_error" and not reweights.as_graded(report).exercises

    def has_no_mark(cell: str) -> bool:
        name = cell.removeprefix(course.CHECK_PREFIX)
        return name != cell and (name in failed or (nothing and not is_by_rule.get(name)))

    return has_no_mark

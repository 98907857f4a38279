"""Everyone's marks in one unit, as nbgrader's gradebook counts them; for reading only."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from nbgrader.api import Assignment, BaseCell, Grade, Student, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import inspect
from sqlalchemy.orm import Session

from .class_gradebook import FILE, reading
from .provenance import TABLE


class NothingGraded(Exception):
    """There are no marks of the unit; `str()` says what to do."""


@dataclass(frozen=True)
class CellMark:
    """What one grade cell is worth to one student: a person's score if there is one, else the automatic one."""

    score: float
    is_waiting: bool
    """Whether a person has to give the mark; until then it is 0."""


@dataclass(frozen=True)
class StudentMarks:
    """One student's marks. Without cells if nothing was handed in."""

    student: str
    name: str
    """First and last name, as far as the gradebook has them."""
    email: str = ""
    cells: dict[str, CellMark] = field(default_factory=dict)
    """By the names of the grade cells."""
    penalty: float = 0.0
    late: timedelta = timedelta()
    """How long after the due date it came; zero if it was in time."""
    submission: str = ""
    """SHA-256 of the file that the marks are about; empty if `autograder` did not give them."""
    status: str = ""
    """How marking went, as in `Report.status`."""

    @property
    def is_handed_in(self) -> bool:
        return bool(self.cells)

    @property
    def score(self) -> float:
        """After the penalty for handing in late."""
        return max(0.0, sum(cell.score for cell in self.cells.values()) - self.penalty)


def class_marks(root: Path, unit: str) -> list[StudentMarks]:
    """The marks of everyone in the gradebook of the course in `root`, by id. Raises NothingGraded and CourseProblem."""
    if not (root / FILE).is_file():
        raise NothingGraded(f"Nothing is graded yet: there is no {root / FILE}. Run `autograder grade {unit}`.")
    with reading(root) as session:
        handed_in = _handed_in(session, unit)
        if not handed_in:
            raise NothingGraded(f"Nothing of {unit} is graded in {root / FILE} yet. Run `autograder grade {unit}`.")
        cells, kept = _cells(session, unit), _kept(session)
        return [_marks(student, handed_in.get(student.id), cells, kept) for student in _students(session)]


def _marks(
    student: Student,
    handed_in: tuple[SubmittedAssignment, SubmittedNotebook] | None,
    cells: dict[str, dict[str, CellMark]],
    kept: dict[str, tuple[str, str]],
) -> StudentMarks:
    name = " ".join(filter(None, (student.first_name, student.last_name)))
    if handed_in is None:
        return StudentMarks(student.id, name, student.email or "")
    submission, notebook = handed_in
    digest, status = kept.get(notebook.id, ("", ""))
    return StudentMarks(
        student.id,
        name,
        student.email or "",
        cells.get(notebook.id, {}),
        notebook.late_submission_penalty or 0.0,
        timedelta(seconds=submission.total_seconds_late if submission.timestamp else 0),
        digest,
        status,
    )


def _students(session: Session) -> list[Student]:
    found: list[Student] = session.query(Student).order_by(Student.id).all()
    return found


def _handed_in(session: Session, unit: str) -> dict[str, tuple[SubmittedAssignment, SubmittedNotebook]]:
    """What there is of each student who handed something in."""
    rows = (
        session.query(SubmittedAssignment, SubmittedNotebook)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .filter(Assignment.name == unit)
    )
    return {submission.student_id: (submission, notebook) for submission, notebook in rows}


def _cells(session: Session, unit: str) -> dict[str, dict[str, CellMark]]:
    """The marks by the gradebook's id of the submitted notebook and the name of the cell."""
    found: dict[str, dict[str, CellMark]] = {}
    rows = (
        session.query(
            Grade.notebook_id, BaseCell.name, Grade.score, Grade.needs_manual_grade, Grade.manual_score.is_(None)
        )
        .join(BaseCell, BaseCell.id == Grade.cell_id)
        .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .filter(Assignment.name == unit)
    )
    for notebook, name, score, needs_person, is_unscored in rows:
        found.setdefault(notebook, {})[name] = CellMark(float(score), bool(needs_person and is_unscored))
    return found


def _kept(session: Session) -> dict[str, tuple[str, str]]:
    """Digest and status of what each mark is about, by the gradebook's id of the submitted notebook."""
    if not inspect(session.connection()).has_table(TABLE.name):
        return {}
    columns = TABLE.c.submitted_notebook_id, TABLE.c.submission, TABLE.c.status
    rows = session.execute(TABLE.select().with_only_columns(*columns))
    return {notebook: (digest, status) for notebook, digest, status in rows}

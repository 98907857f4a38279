"""The class in nbgrader's gradebook, in one session for the whole batch."""

import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Gradebook, MissingEntry, Student
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from .. import course
from . import attempts, entry, provenance
from .attempts import Attempt
from .clean_notebook import released
from .course_directory import CourseProblem, first_error, nbgrader_api
from .entry import Cells, Entry, Times
from .provenance import Provenance
from .roster import Enrolled

FILE = "gradebook.db"
_MAKING = ".gradebook-"


@contextmanager
def said_in_a_sentence(root: Path) -> Iterator[None]:
    """Turns a locked or damaged database, a full disk and the like into a CourseProblem."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise _cannot_be_written(root, getattr(error, "orig", None) or error) from error


def _cannot_be_written(root: Path, reason: object) -> CourseProblem:
    return CourseProblem(
        f"The gradebook {root / FILE} or a file beside it cannot be opened and written: {reason}. Is the folder "
        "there and yours, the disk not full, and no other program writing to it? What was recorded is kept; run "
        "the same command again for the rest."
    )


@contextmanager
def reading(root: Path) -> Iterator[Session]:
    """A session that cannot write. Raises CourseProblem."""
    uri = f"{(root / FILE).resolve().as_uri()}?mode=ro"
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(uri, uri=True))
    try:
        with said_in_a_sentence(root), Session(engine) as session:
            yield session
    finally:
        engine.dispose()


def students_and_assignments(root: Path) -> tuple[list[Enrolled], list[str]]:
    """Everyone in the course's gradebook, and the names of its assignments, whether this kit's or not.

    Both are empty if there is no gradebook. Raises CourseProblem.
    """
    if not (root / FILE).is_file():
        return [], []
    with reading(root) as session:
        return entry.students(session), [name for (name,) in session.query(Assignment.name)]


class ClassGradebook:
    """The gradebook of a course, for the marks of one unit."""

    def __init__(self, directory: Any, unit: str) -> None:
        """Opens the gradebook, creating it if there is none, and puts the unit as it is now into it.

        Raises CourseProblem, and errors of SQLAlchemy and the system, which `said_in_a_sentence` turns into one.
        """
        root = self._root = Path(directory.root)
        self._unit = unit
        _refuse_another(root, directory.db_url)
        _clean_up(root)
        if not (root / FILE).exists():
            _make(root, directory.course_id)
        self._gradebook = Gradebook(directory.db_url, directory.course_id)
        self._session: Session = self._gradebook.db()
        penalties = AssignLatePenalties(config=directory.config)
        self._late_penalties = penalties.plugin_class(parent=penalties)
        provenance.make_table(self._gradebook.engine)
        attempts.make_table(self._gradebook.engine)
        if not self._holds_the_unit():
            self._put_unit()
        self._cells: Cells = entry.cells(self._session, unit)

    def enrol(self, students: Sequence[Enrolled]) -> None:
        """Adds students, or updates what the gradebook knows about them."""
        known = {student.id: student for student in self._session.query(Student)}
        for student in students:
            told = {"first_name": student.first_name, "last_name": student.last_name, "email": student.email}
            if student.id not in known:
                self._session.add(Student(id=student.id, **told))
                continue
            for field, value in told.items():
                if value is not None:
                    setattr(known[student.id], field, value)
        self.commit()

    def entry(self, student: str) -> Entry | None:
        """The student's entry for the unit, if there is one."""
        return entry.find(self._session, self._cells, student)

    def new_entry(self, student: str) -> Entry:
        """An empty entry for the unit's cells, for a student who has none."""
        return entry.new(self._session, self._cells, student)

    def waiting(self) -> int:
        """How many written answers are waiting for a person."""
        return entry.waiting(self._session, self._cells)

    def late(self) -> dict[str, timedelta]:
        """Who handed the unit in late, and how late."""
        return entry.late(self._session, self._cells)

    def penalise(self, entry: Entry) -> None:
        """Sets the penalty for handing in late, as nbgrader's plugin decides it."""
        entry.penalise(self._late_penalties)

    def provenance(self, entry: Entry) -> Provenance | None:
        """What is recorded about the mark in an entry; None if `autograder grade` did not give it."""
        return provenance.find(self._session, entry.id)

    def keep(self, entry: Entry, kept: Provenance) -> None:
        """Records what the mark in an entry is based on."""
        provenance.put(self._session, entry.id, kept)

    def attempts(self, student: str, since: float) -> list[Attempt]:
        """The student's files that were marked after a moment, the first one first."""
        return attempts.of_student(self._session, student, self._unit, since)

    def count(self, student: str, attempt: Attempt) -> None:
        """Counts a file that is marked; one that is marked again is not counted again."""
        attempts.put(self._session, student, self._unit, attempt)

    def times(self) -> dict[str, Times]:
        """When everyone who is marked handed in, and when it is due for them."""
        return entry.times(self._session, self._cells)

    def commit(self) -> None:
        """Commits everything since the last commit, all of it or nothing, and frees the memory that it took."""
        self._session.commit()
        self._session.expunge_all()

    def rollback(self) -> None:
        """Undoes everything since the last commit."""
        self._session.rollback()
        self._session.expunge_all()

    def close(self) -> None:
        """Ends the session; what was not committed is lost."""
        self._gradebook.close()

    def _holds_the_unit(self) -> bool:
        """Whether the gradebook has all of the unit's cells as they are released, with their points and texts."""
        try:
            held = self._gradebook.find_notebook(self._unit, self._unit)
        except MissingEntry:
            return False
        wanted = {
            cell.metadata["nbgrader"]["grade_id"]: cell
            for cell in released(self._unit, self._root).cells
            if "nbgrader" in cell.metadata
        }
        about = {name: cell.metadata["nbgrader"] for name, cell in wanted.items()}
        return (
            {cell.name: cell.max_score for cell in held.grade_cells} == course.points(self._unit, self._root)
            and {cell.name for cell in held.solution_cells} == {name for name in about if about[name]["solution"]}
            and {cell.name: (cell.cell_type, cell.source, cell.checksum) for cell in held.source_cells}
            == {name: (cell.cell_type, cell.source, about[name]["checksum"]) for name, cell in wanted.items()}
        )

    def _put_unit(self) -> None:
        """Puts the unit's cells and points into the gradebook; changed points too, even if there are submissions."""
        self.commit()
        with tempfile.TemporaryDirectory() as nowhere:  # `build` makes release/; only the gradebook is wanted here
            api: Any = nbgrader_api(self._root, source=course.holder(self._root) / course.SOURCE, release=Path(nowhere))
            result = api.generate_assignment(self._unit, force=True, create=True)
        if result["success"]:
            return
        if "KeyboardInterrupt" in result["error"]:  # nbgrader's API lets nothing through
            raise KeyboardInterrupt
        database = re.search(r"\(sqlite3\.\w+\) .+", result.get("log", ""))
        reason = database[0] if database else first_error(result)
        if database or "OSError" in reason:
            raise _cannot_be_written(self._root, reason)
        advice = (
            " Exercises can be added or taken away only before anything is graded; keep this gradebook for the old "
            "version and start a new one."
        )
        raise CourseProblem(
            f"nbgrader could not put {self._unit} as it is now into the gradebook: {reason}"
            + (advice if "RuntimeError" in reason else "")
        )

    def __enter__(self) -> "ClassGradebook":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _refuse_another(root: Path, url: str) -> None:
    """Refuses a gradebook anywhere but where `--dry-run`, formgrader and the next run look for marks."""
    if url != f"sqlite:///{root / FILE}":
        raise CourseProblem(
            f"The course's nbgrader_config.py puts the gradebook at {url}; `autograder grade` keeps it in "
            f"{root / FILE}. Take CourseDirectory.db_url out of that file."
        )
    if "?" in str(root):
        raise CourseProblem(f"nbgrader can have no gradebook in a folder whose name has a question mark: {root}.")


def _clean_up(root: Path) -> None:
    """Removes what a killed run left behind."""
    for left_over in root.glob(f"{_MAKING}*"):
        shutil.rmtree(left_over)


def _make(root: Path, course_id: str) -> None:
    """Makes an empty gradebook elsewhere and moves it into place whole, because nbgrader makes one in many steps."""
    with tempfile.TemporaryDirectory(dir=root, prefix=_MAKING) as folder:
        Gradebook(f"sqlite:///{folder}/{FILE}", course_id).close()
        (Path(folder) / FILE).rename(root / FILE)

"""The class in nbgrader's gradebook, in one session for the whole batch."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Base, Gradebook, MissingEntry, Student
from sqlalchemy import Column, MetaData, String, Table, inspect
from sqlalchemy.orm import Session

from .. import course
from . import attempts, database, entry, lateness, provenance, tools, tries
from .attempts import Attempt
from .clean_notebook import released
from .course_directory import CourseProblem, first_error, nbgrader_api
from .database import Database, reading
from .entry import Cells, Entry, Times
from .lateness import LatePenalties
from .marks import UnitMarks, unit_marks
from .provenance import Provenance
from .roster import Enrolled
from .time_stamp import StampFormat, SubmissionTime
from .tries import Try

_VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), nullable=False))
"""Which of its gradebooks' versions this is, as nbgrader notes it."""
_MAKING = ".gradebook-"
_WIDEST = 128
"""Characters of a name or an address, in nbgrader's tables; SQLite would take more."""


def students_and_assignments(root: Path) -> tuple[list[Enrolled], list[str]]:
    """Everyone in the course's gradebook, and the names of its assignments, whether this kit's or not.

    Both are empty if there is no gradebook. Raises CourseProblem.
    """
    with reading(root) as session:
        if session is None:
            return [], []
        return entry.students(session), [name for (name,) in session.query(Assignment.name)]


class ClassGradebook:
    """The gradebook of a course, for the marks of one unit."""

    def __init__(self, directory: Any, unit: str, copy: Database | None = None) -> None:
        """Opens the gradebook, creating it if there is none, and puts the unit as it is now into it.

        copy: a copy of the gradebook, to be opened in its place.

        Raises CourseProblem, and errors of SQLAlchemy and the system, which `said_in_a_sentence` turns into one.
        """
        self._root = Path(directory.root)
        self._database = copy or database.of_directory(directory)
        self._unit = unit
        _clean_up(self._database.root)
        _make_if_missing(self._database, directory.course_id)
        self._gradebook = Gradebook(self._database.address, directory.course_id)
        self._session: Session = self._gradebook.db()
        self._late_penalties = LatePenalties(directory)
        self.stamp_format = StampFormat.of_course(directory)
        provenance.make_table(self._gradebook.engine)
        attempts.make_table(self._gradebook.engine)
        lateness.make_table(self._gradebook.engine)
        tries.make_table(self._gradebook.engine)
        if not self._holds_the_unit():
            self._put_unit()
        self._cells: Cells = entry.cells(self._session, unit)

    def enrol(self, students: Sequence[Enrolled]) -> list[str]:
        """Adds students, or updates what the gradebook knows about them; returns whom it knew otherwise."""
        changed = []
        known = {student.id: student for student in entry.students(self._session)}
        for student in students:
            texts = {"first_name": student.first_name, "last_name": student.last_name, "email": student.email}
            told = {field: value and value[:_WIDEST] for field, value in texts.items()}
            if student.id not in known:
                self._session.add(Student(id=student.id, **told))
                continue
            held = known[student.id]
            if new := {field: value for field, value in told.items() if value not in (None, getattr(held, field))}:
                self._session.query(Student).filter(Student.id == student.id).update(new)
                changed.append(student.id)
        self.commit()
        return changed

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

    def penalised(self) -> dict[str, float]:
        """Return the points deducted for late submission, by student."""
        return entry.penalised(self._session, self._cells)

    def unresolved(self) -> dict[str, str]:
        """Return the text of each time stamp that does not determine a time, by student."""
        return entry.unresolved(self._session, self._cells)

    def marks(self) -> UnitMarks:
        """Everyone's marks, as they are at this moment."""
        return unit_marks(self._session, self._unit)

    def put_time(self, entry: Entry, time: SubmissionTime, *, is_same_file: bool) -> None:
        """Records when a submission came. is_same_file: whether it is the file that was graded before."""
        entry.put_time(self._session, time, is_same_file=is_same_file)

    def penalise(self, entry: Entry) -> bool:
        """Sets the penalty for being late, as nbgrader's plugin decides it; returns whether points change."""
        return entry.penalise(self._late_penalties)

    def provenance(self, entry: Entry) -> Provenance | None:
        """What is recorded about the mark in an entry; None if `autograder grade` did not give it."""
        return provenance.find(self._session, entry.id)

    def keep(self, entry: Entry, kept: Provenance) -> None:
        """Records what the mark in an entry is based on."""
        provenance.put(self._session, entry.id, kept)

    def attempts(self, student: str, since: float) -> list[Attempt]:
        """The student's files that were marked after a moment, the first one first."""
        return attempts.of_student(self._session, student, self._unit, since)

    def count(self, student: str, attempt: Attempt, *, each: bool = False) -> None:
        """Counts a file that is marked; one that is marked again is not counted again, unless each marking is."""
        attempts.put(self._session, student, self._unit, attempt, each=each)

    def tries(self, student: str) -> list[Try]:
        """The student's gradings that were begun and gave no mark, the first one first."""
        return tries.of_student(self._session, student, self._unit)

    def begin(self, student: str, its: Try) -> None:
        """Counts a grading that is about to begin."""
        tries.begin(self._session, student, self._unit, its)

    def forget(self, student: str, its: Try, *, earlier: bool = False) -> None:
        """Counts a grading no longer; earlier: nor any other one of the same file."""
        tries.forget(self._session, student, self._unit, its, earlier=earlier)

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
            {cell.name: cell.max_score for cell in held.grade_cells} == course.unit(self._unit, self._root).points
            and {cell.name for cell in held.solution_cells} == {name for name in about if about[name]["solution"]}
            and {cell.name: (cell.cell_type, cell.source, cell.checksum) for cell in held.source_cells}
            == {name: (cell.cell_type, cell.source, about[name]["checksum"]) for name, cell in wanted.items()}
        )

    def _put_unit(self) -> None:
        """Puts the unit's cells and points into the gradebook; changed points too, even if there are submissions."""
        self.commit()
        with tempfile.TemporaryDirectory() as nowhere:  # `build` makes release/; only the gradebook is wanted here
            source = course.units_root(self._root) / course.SOURCE
            api: Any = nbgrader_api(self._root, db_url=self._database.address, source=source, release=Path(nowhere))
            result = api.generate_assignment(self._unit, force=True, create=True)
        if result["success"]:
            return
        if "KeyboardInterrupt" in result["error"]:  # nbgrader's API lets nothing through
            raise KeyboardInterrupt
        of_database = re.search(r"\((?:sqlite3|psycopg2?)\.[\w.]+\) .+", result.get("log", ""))
        reason = of_database[0] if of_database else first_error(result)
        if of_database or "OSError" in reason:
            raise self._database.problem(RuntimeError(reason))
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


def _clean_up(root: Path) -> None:
    """Removes what a killed run left behind."""
    for left_over in root.glob(f"{_MAKING}*"):
        shutil.rmtree(left_over)


def _make_if_missing(its: Database, course_id: str) -> None:
    """Makes an empty gradebook whole or not at all, because nbgrader makes one in many steps."""
    if its.file is None:
        engine = its.engine()
        with engine.begin() as connection:  # PostgreSQL makes tables, as all else, when it commits
            if not inspect(connection).has_table(_VERSION.name):
                Base.metadata.create_all(connection)
                _VERSION.create(connection)
                connection.execute(_VERSION.insert().values(version_num=tools.newest_version()))
        engine.dispose()
    elif not its.file.exists():
        with tempfile.TemporaryDirectory(dir=its.root, prefix=_MAKING) as folder:
            Gradebook(database.address_of(Path(folder) / its.file.name), course_id).close()
            (Path(folder) / its.file.name).rename(its.file)

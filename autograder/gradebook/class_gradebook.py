"""The class in nbgrader's gradebook: everyone's grades, and one database session for a whole batch of submissions.

Scores that persons gave, and late penalties, count as they do in nbgrader.
"""

import re
import shlex
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader import utils
from nbgrader.api import Assignment, Base, Gradebook, MissingEntry, Student, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import Column, MetaData, String, Table, inspect, select
from sqlalchemy.orm import Session

from .. import UserError, course
from . import lateness, nbgrader_course, records, reweights
from .clean_notebook import released
from .entry import Cells, Entry, Shown, all_entries, counts_by, find_cells, find_entry, new_entry
from .lateness import Deadlines, LateDays, LatePenalties, extensions_of_unit
from .nbgrader_course import CourseProblem, Database, course_directory, first_error, nbgrader_api
from .records import Attempt
from .reweights import Rules
from .roster import Enrolled, enrolled
from .time_stamp import StampFormat


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
    for student, its in all_entries(session, cells, deadlines, days).items():
        origin = provenance.get(its.id)
        about = (origin.status, origin.submission, origin.page) if origin else ("", "", "")
        waiting = frozenset(its.waiting())
        grades[student] = Grade(its.shown(), waiting, its.late, *about, its.timestamp, its.unresolved)
    return UnitGrades(
        unit,
        {name: cells.points[name] for name in in_order},
        grades,
        enrolled(session),
        extensions_of_unit(session, unit),
        days,
    )


_VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), nullable=False))
"""nbgrader's own table with the version of the gradebook."""
_WIDEST = 128
"""Maximum number of characters of a name or an address in nbgrader's tables; SQLite would store longer ones."""
_AT_ONCE = 1_000
"""Maximum number of rows of a large class that are in memory together."""


@dataclass(frozen=True)
class Times:
    """Submission time and due date of a student's submission, in UTC; None for a time that is missing."""

    handed_in: datetime | None
    due: datetime | None
    """The due date, extensions included."""
    extension: timedelta = timedelta()
    """Time from the unit's due date to the student's."""


class ClassGradebook(AbstractContextManager["ClassGradebook"]):
    """The gradebook of a course, opened to read and write the grades of one unit."""

    def __init__(self, directory: Any, unit: str, copy: Database | None = None) -> None:
        """Open the gradebook, creating it if it is missing, and bring the unit's cells and points in it up to date.

        copy: a copy of the gradebook to open instead.

        Raises CourseProblem, and errors of SQLAlchemy and the system, which `explained_errors` explains.
        """
        self._root = Path(directory.root)
        self._database = copy or nbgrader_course.database_of_directory(directory)
        self._directory = directory
        self._unit = unit
        _create_if_missing(self._database)
        self._gradebook = Gradebook(self._database.address, directory.course_id)
        self._session: Session = self._gradebook.db()
        self._late_penalties = LatePenalties(directory, self._gradebook, unit)
        self.stamp_format = StampFormat.of_course(directory)
        self.deadlines = Deadlines.of_course(directory)
        records.METADATA.create_all(self._gradebook.engine)
        self.rules: Rules = reweights.of_unit(self._session, unit)
        """Rules for exercises that count other points than they were released with."""
        if not self._holds_the_unit():
            self._put_unit()
            self._put_points()
        cells = find_cells(self._session, unit)
        assert cells is not None
        self._cells = cells

    def enrol(self, students: Sequence[Enrolled]) -> list[str]:
        """Add students, or update their names and addresses; return the ids of those whose data changed."""
        known = {student.id: student for student in self._session.query(Student)}
        for student in students:
            texts = {"first_name": student.first_name, "last_name": student.last_name, "email": student.email}
            cut = {field: value and value[:_WIDEST] for field, value in texts.items()}
            if student.id not in known:
                self._session.add(Student(id=student.id, **cut))
                continue
            for field, value in cut.items():
                if value not in (None, getattr(known[student.id], field)):
                    setattr(known[student.id], field, value)
        changed = {student.id for student in self._session.dirty}
        self.commit()
        return [student.id for student in students if student.id in changed]

    def entry(self, student: str) -> Entry | None:
        """Return the student's entry for the unit, if there is one."""
        return find_entry(self._session, self._unit, self._cells, student, self.deadlines)

    def new_entry(self, student: str) -> Entry:
        """Return an empty entry for the unit's cells, for a student who has none."""
        return new_entry(self._session, self._unit, self._cells, student, self.deadlines)

    def grades(self) -> UnitGrades:
        """Return the unit's grades of all students."""
        return unit_grades(self._session, self._unit, self._cells, self.deadlines)

    def times(self) -> dict[str, Times]:
        """Return submission time and due date of each graded submission, by student."""
        submissions = (
            self._session.query(SubmittedAssignment)
            .filter_by(assignment_id=self._cells.assignment)
            .filter(SubmittedAssignment.notebooks.any())  # else there is only an extension
        )
        return {
            one.student_id: Times(one.timestamp, lateness.due(one), one.extension or timedelta())
            for one in submissions.yield_per(_AT_ONCE)
        }

    def late_or_penalised(self, times: Mapping[str, Times]) -> set[str]:
        """Return the students whose submission is late, or has lost points for that. times: the result of `times()`."""
        late = {one for one, its in times.items() if its.handed_in and its.due and its.handed_in > its.due}
        penalised = (
            self._session.query(SubmittedAssignment.student_id)
            .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .filter(
                SubmittedNotebook.notebook_id == self._cells.notebook, SubmittedNotebook.late_submission_penalty > 0
            )
        )
        return late | {student for (student,) in penalised}

    def counted_otherwise(self) -> set[str]:
        """Return the students with a recorded grade whose points do not count by the present rules yet."""
        rows = (
            self._session.query(SubmittedAssignment.student_id, SubmittedNotebook.id)
            .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .filter(SubmittedNotebook.notebook_id == self._cells.notebook)
        )
        counted = records.all_counted(self._session)
        return {student for student, notebook in rows if not counts_by(counted.get(notebook), self._cells)}

    def penalise(self, entry: Entry) -> bool:
        """Set an entry's late penalty as nbgrader's plugin computes it now; return whether that changes the points."""
        return entry.penalise(self._late_penalties)

    def outdated_penalties(self) -> dict[str, list[str]]:
        """Return, for each other unit, the students whose recorded late penalty is outdated; empty without late days.

        Late days are spent in the order of due dates, so a grade in one unit changes penalties in units due later.
        """
        if not self._late_penalties.has_late_days:
            return {}
        outdated: dict[str, list[str]] = {}
        others = self._session.query(Assignment.name).filter(Assignment.name != self._unit)
        for (unit,) in others.order_by(Assignment.duedate).all():
            penalties = LatePenalties(self._directory, self._gradebook, unit)
            cells = find_cells(self._session, unit)
            for student, its in all_entries(self._session, cells, self.deadlines, {}).items() if cells else ():
                if (its.penalty(penalties) or 0.0) != its.shown().late_penalty:
                    outdated.setdefault(unit, []).append(student)
        return outdated

    def attempts(self, student: str) -> list[Attempt]:
        """Return a student's attempts, oldest first."""
        return records.attempts(self._session, self._unit, student)

    def add_attempt(self, student: str, attempt: Attempt) -> None:
        """Record an attempt."""
        records.add_attempt(self._session, self._unit, student, attempt)

    def commit(self) -> None:
        """Commit all changes since the last commit in one transaction, and free their memory."""
        self._session.commit()
        self._session.expunge_all()

    def rollback(self) -> None:
        """Undo all changes since the last commit."""
        self._session.rollback()
        self._session.expunge_all()

    def close(self) -> None:
        """End the session; changes that are not committed are lost."""
        self._gradebook.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _holds_the_unit(self) -> bool:
        """Return whether the gradebook has the unit's cells as they are released, with the points that they count."""
        try:
            held = self._gradebook.find_notebook(self._unit, self._unit)
        except MissingEntry:
            return False
        about = {its["grade_id"]: (cell, its) for cell, its in self._cells_with_points()}
        return (
            {cell.name: cell.max_score for cell in held.grade_cells}
            == {name: its["points"] for name, (_, its) in about.items() if its["grade"]}
            and {cell.name for cell in held.solution_cells}
            == {name for name, (_, its) in about.items() if its["solution"]}
            and {cell.name: (cell.cell_type, cell.source, cell.checksum) for cell in held.source_cells}
            == {name: (cell.cell_type, cell.source, its["checksum"]) for name, (cell, its) in about.items()}
        )

    def _put_points(self) -> None:
        """Give exercises the points that they count, even if there are submissions."""
        held = self._gradebook.find_notebook(self._unit, self._unit)
        cells, sources = ({cell.name: cell for cell in kind} for kind in (held.grade_cells, held.source_cells))
        for _, about in self._cells_with_points():
            if about["grade"]:
                name = about["grade_id"]
                cells[name].max_score, sources[name].checksum = about["points"], about["checksum"]
        self.commit()

    def _cells_with_points(self) -> Iterator[tuple[Any, Any]]:
        """Yield the released cells that nbgrader knows, each with its metadata and the points that it counts."""
        points = reweights.reweighted_unit(course.unit(self._unit, self._root), self.rules).points
        for cell in released(self._unit, self._root).cells:
            if about := cell.metadata.get("nbgrader"):
                if about["grade"] and about["points"] != points[about["grade_id"]]:
                    about["points"] = points[about["grade_id"]]
                    about["checksum"] = utils.compute_checksum(cell)  # nbgrader's has the points in it
                yield cell, about

    def _put_unit(self) -> None:
        """Put the unit's cells into the gradebook, even if there are submissions."""
        self.commit()
        with tempfile.TemporaryDirectory() as nowhere:  # `build` makes release/; only the gradebook is needed here
            source = course.units_root(self._root) / course.SOURCE
            api: Any = nbgrader_api(self._root, db_url=self._database.address, source=source, release=Path(nowhere))
            result = api.generate_assignment(self._unit, force=True, create=True)
        if result["success"]:
            return
        if "KeyboardInterrupt" in result["error"]:  # nbgrader's API catches it
            raise KeyboardInterrupt
        of_database = re.search(r"\((?:sqlite3|psycopg2?)\.[\w.]+\) .+", result.get("log", ""))
        reason = of_database[0] if of_database else first_error(result)
        if of_database or "OSError" in reason:
            raise self._database.problem(RuntimeError(reason))
        advice = (
            " Exercises can be added or removed only before anything is graded. Keep this gradebook for the old "
            "version, and start a new one."
        )
        raise CourseProblem(
            f"nbgrader could not enter the present version of {self._unit} into the gradebook: {reason}"
            + (advice if "RuntimeError" in reason else "")
        )


def _create_if_missing(its: Database) -> None:
    """Create an empty gradebook in one transaction, because nbgrader creates one in many."""
    engine = its.engine()
    with engine.begin() as connection:
        if its.file:
            connection.exec_driver_sql("BEGIN")  # Python's own begins only before rows are written
        if not inspect(connection).has_table(_VERSION.name):
            Base.metadata.create_all(connection)
            _VERSION.create(connection)
            connection.execute(_VERSION.insert().values(version_num=nbgrader_course.newest_version()))
    engine.dispose()


@contextmanager
def gradebook_copy(source: Database, course_id: str) -> Iterator[Database | None]:
    """Copy a gradebook into a temporary folder, for a dry run; None if there is no gradebook yet.

    The source is only read, and may be a server's database that its role must not write to. Raises CourseProblem.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Database.in_file(Path(folder) / nbgrader_course.GRADEBOOK)
        with source.reading() as session:
            if session is None:
                yield None
                return
            tables = inspect(session.connection()).get_table_names()
            with closing(Gradebook(copy.address, course_id)) as gradebook, gradebook.engine.begin() as connection:
                records.METADATA.create_all(connection)
                connection.execute(Base.metadata.tables["course"].delete())  # nbgrader has put one there
                for table in (*Base.metadata.sorted_tables, *records.METADATA.sorted_tables):
                    if table.name in tables:  # `nbgrader` alone creates none of our own
                        for rows in session.execute(select(table)).mappings().partitions(_AT_ONCE):
                            connection.execute(table.insert(), list(map(dict, rows)))
        yield copy

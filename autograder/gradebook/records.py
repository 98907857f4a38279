"""The autograder's own tables in the gradebook, which nbgrader ignores.

- `autograder_mark`: the origin of each grade (`Provenance`).
- `autograder_unresolved_stamp`: texts of time stamps that determine no time.
- `autograder_attempt`: when each submitted file was graded (`Attempt`). A row is committed together with the grade, so
  a limit on attempts holds however often grading is stopped and started.
- `autograder_points_change`: changes of an exercise's points (`PointsChange`).
- `autograder_reading`: the reader of each written answer that is shared out (`Reading`).
- `autograder_counted`: for each submission, the rules by which its points count, and a person's scores before them.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import Column, Float, Integer, MetaData, String, Table, Text, inspect, select
from sqlalchemy.orm import Session

from ..report import Report

METADATA = MetaData()


@dataclass(frozen=True)
class Provenance:
    """The origin of a grade. Fields that `Report` also has mean the same here."""

    submission: str
    status: str
    version: str
    kit: str
    torch: str
    device: str
    isolation: str
    enforced: str
    cases: str
    page: str
    """Digest of the feedback page's content. If scores or comments have changed since, the page is written again."""


@dataclass(frozen=True)
class Attempt:
    """A grading that gave a grade."""

    submission: str
    """SHA-256 of the file."""
    handed_in: str
    """Submission time according to the time stamp; empty if it is unknown."""
    marked_at: float
    """Time of the grade, in seconds since 1970."""


@dataclass(frozen=True)
class PointsChange:
    """A change of an exercise's points, or its undoing."""

    exercise: str
    kind: str
    """points, drop, give_full or undo."""
    points: float
    """The maximum after the change."""
    released: float
    """The maximum before any change."""
    changed_at: float
    """In seconds since 1970."""


@dataclass(frozen=True)
class Reading:
    """A reader's task: a student's answer to one written question."""

    reader: str
    points: float | None = None
    """The points from the reader's sheet; None until a sheet with points is read."""


def _columns(kind: type) -> list[Column[Any]]:
    return [Column(field.name, Float if field.type is float else Text, nullable=False) for field in fields(kind)]


def _of_notebooks(name: str, *columns: Column[Any]) -> Table:
    return Table(name, METADATA, Column("submitted_notebook_id", String(32), primary_key=True), *columns)


_MARKS = _of_notebooks("autograder_mark", *_columns(Provenance))
_STAMPS = _of_notebooks("autograder_unresolved_stamp", Column("stamp", Text, nullable=False))
_COUNTED = _of_notebooks("autograder_counted", Column("scores", Text, nullable=False))
_READINGS = _of_notebooks(
    "autograder_reading", Column("question", String(128), primary_key=True), Column("reader", Text, nullable=False),
    Column("points", Float),
)  # fmt: skip
_POINTS_CHANGES = Table(
    "autograder_points_change", METADATA, Column("id", Integer, primary_key=True), Column("unit", Text, nullable=False),
    *_columns(PointsChange),
)  # fmt: skip
_ATTEMPTS = Table(
    "autograder_attempt", METADATA, Column("id", Integer, primary_key=True),
    Column("student", Text, nullable=False, index=True), Column("unit", Text, nullable=False), *_columns(Attempt),
)  # fmt: skip


def provenance_of(report: Report, page: str) -> Provenance:
    """Return the provenance of the grade in a report. page: digest of the feedback page's content."""
    same = {field.name: getattr(report, field.name) for field in fields(Provenance) if field.name != "page"}
    return Provenance(**{**same, "enforced": ", ".join(report.enforced)}, page=page)


def provenance(session: Session, notebook: str) -> Provenance | None:
    """Return the provenance of a grade; None if `autograder` did not give it. notebook: the submitted one's id."""
    row = _row(session, _MARKS, notebook)
    return Provenance(*row[1:]) if row else None


def all_provenance(session: Session) -> dict[str, Provenance]:
    """Return the provenance of all grades, by the id of the submitted notebook."""
    return {notebook: Provenance(*values) for notebook, *values in _rows(session, _MARKS)}


def put_provenance(session: Session, notebook: str, record: Provenance) -> None:
    """Record the provenance of a grade instead of an earlier one."""
    _replace(session, _MARKS, notebook, asdict(record))


def unresolved_stamp(session: Session, notebook: str) -> str | None:
    """Return the text of a submitted notebook's time stamp if it determines no time."""
    row = _row(session, _STAMPS, notebook)
    return row[1] if row else None


def unresolved_stamps(session: Session) -> dict[str, str]:
    """Return the texts of all time stamps that determine no time, by the id of the submitted notebook."""
    return dict(map(tuple, _rows(session, _STAMPS)))


def put_unresolved_stamp(session: Session, notebook: str, stamp: str | None) -> None:
    """Record the text of a time stamp that determines no time; None if there is no such stamp any more."""
    _replace(session, _STAMPS, notebook, None if stamp is None else {"stamp": stamp})


def counted(session: Session, notebook: str) -> str | None:
    """Return, as JSON, the rules by which a submitted notebook's points count; None without rules."""
    row = _row(session, _COUNTED, notebook)
    return row[1] if row else None


def all_counted(session: Session) -> dict[str, str]:
    """Return what `counted` returns, of all submitted notebooks with rules, by their ids."""
    return dict(map(tuple, _rows(session, _COUNTED)))


def put_counted(session: Session, notebook: str, scores: str | None) -> None:
    """Record the rules by which a submitted notebook's points count; None if there are no rules any more."""
    _replace(session, _COUNTED, notebook, None if scores is None else {"scores": scores})


def readings(session: Session, notebook: str) -> dict[str, Reading]:
    """Return the readings of a submitted notebook's written answers, by question."""
    rows = session.execute(select(_READINGS).filter_by(submitted_notebook_id=notebook))
    return {question: Reading(reader, points) for _, question, reader, points in rows}


def put_reading(session: Session, notebook: str, question: str, reading: Reading) -> None:
    """Record the reading of a written answer instead of an earlier one."""
    session.execute(_READINGS.delete().filter_by(submitted_notebook_id=notebook, question=question))
    session.execute(_READINGS.insert().values(submitted_notebook_id=notebook, question=question, **asdict(reading)))


def attempts(session: Session, unit: str, student: str) -> list[Attempt]:
    """Return a student's attempts in a unit, oldest first."""
    rows = session.execute(select(_ATTEMPTS).filter_by(student=student, unit=unit).order_by(_ATTEMPTS.c.id))
    return [Attempt(*values) for _, _, _, *values in rows]


def add_attempt(session: Session, unit: str, student: str, attempt: Attempt) -> None:
    """Record an attempt."""
    session.execute(_ATTEMPTS.insert().values(student=student, unit=unit, **asdict(attempt)))


def points_changes(session: Session, unit: str) -> list[PointsChange]:
    """Return the changes of the points of a unit's exercises, oldest first."""
    rows = [row for row in _rows(session, _POINTS_CHANGES) if row.unit == unit]
    return [PointsChange(*values) for _, _, *values in sorted(rows)]


def add_points_change(session: Session, unit: str, change: PointsChange) -> None:
    """Record a change of an exercise's points."""
    session.execute(_POINTS_CHANGES.insert().values(unit=unit, **asdict(change)))


def _row(session: Session, table: Table, notebook: str) -> Any:
    return session.execute(select(table).filter_by(submitted_notebook_id=notebook)).one_or_none()


def _rows(session: Session, table: Table) -> Any:
    """Return all rows; none if the table is missing, because only `nbgrader` has written to this gradebook."""
    return session.execute(select(table)) if inspect(session.connection()).has_table(table.name) else ()


def _replace(session: Session, table: Table, notebook: str, values: dict[str, Any] | None) -> None:
    session.execute(table.delete().filter_by(submitted_notebook_id=notebook))
    if values is not None:
        session.execute(table.insert().values(submitted_notebook_id=notebook, **values))

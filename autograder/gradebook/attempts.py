"""When each file that a student handed in was marked, in our own table in the gradebook, which nbgrader ignores.

A row is committed together with the mark, so a limit on attempts holds however often marking is stopped and begun anew.
"""

from dataclasses import dataclass

from sqlalchemy import Column, Float, Integer, MetaData, String, Table, Text, select
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

_METADATA = MetaData()
TABLE = Table(
    "autograder_attempt",
    _METADATA,
    Column("id", Integer, primary_key=True),
    Column("student", Text, nullable=False, index=True),
    Column("unit", String(128), nullable=False),
    Column("submission", String(64), nullable=False),
    Column("handed_in", String(32), nullable=False),
    Column("marked_at", Float, nullable=False),
)


@dataclass(frozen=True)
class Attempt:
    """A file that was marked."""

    submission: str
    """SHA-256 of the file."""
    handed_in: str
    """When, as the file beside it says; empty where that is not known."""
    marked_at: float
    """In seconds since 1970."""


def make_table(engine: Engine) -> None:
    """Makes the table if it is not there."""
    _METADATA.create_all(engine)


def of_student(session: Session, student: str, unit: str, since: float) -> list[Attempt]:
    """A student's attempts after a moment, the first one first."""
    columns = (TABLE.c.submission, TABLE.c.handed_in, TABLE.c.marked_at)
    its = (TABLE.c.student == student, TABLE.c.unit == unit, TABLE.c.marked_at > since)
    return [Attempt(*row) for row in session.execute(select(*columns).where(*its).order_by(TABLE.c.id))]


def put(session: Session, student: str, unit: str, attempt: Attempt, *, each: bool = False) -> None:
    """Counts an attempt, unless it is the last one's file, marked again. each: also then."""
    before = [] if each else of_student(session, student, unit, 0.0)[-1:]
    if before and (before[0].submission, before[0].handed_in) == (attempt.submission, attempt.handed_in):
        return
    session.execute(
        TABLE.insert().values(
            student=student,
            unit=unit,
            submission=attempt.submission,
            handed_in=attempt.handed_in,
            marked_at=attempt.marked_at,
        )
    )

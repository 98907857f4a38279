"""Gradings that `serve` began and that gave no mark, in a table of our own in the gradebook, which nbgrader ignores.

A row is committed before a submission is graded, and removed with its mark. So the number of tries is bounded, whatever
the submission ends: a worker, the grading process, or `serve` itself.
"""

from dataclasses import astuple, dataclass

from sqlalchemy import Column, Float, Integer, MetaData, String, Table, Text, select
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

_METADATA = MetaData()
TABLE = Table(
    "autograder_try",
    _METADATA,
    Column("id", Integer, primary_key=True),
    Column("student", Text, nullable=False, index=True),
    Column("unit", String(128), nullable=False),
    Column("submission", String(64), nullable=False),
    Column("kit", String(64), nullable=False),
    Column("begun_at", Float, nullable=False),
)
_RECORDED = (TABLE.c.submission, TABLE.c.kit, TABLE.c.begun_at)


@dataclass(frozen=True)
class Try:
    """A grading that was begun."""

    submission: str
    """SHA-256 of the file."""
    kit: str
    """The digest of what graded it."""
    begun_at: float
    """In seconds since 1970."""


def make_table(engine: Engine) -> None:
    """Makes the table if it is not there."""
    _METADATA.create_all(engine)


def of_student(session: Session, student: str, unit: str) -> list[Try]:
    """A student's tries that gave no mark, the first one first."""
    its = (TABLE.c.student == student, TABLE.c.unit == unit)
    return [Try(*row) for row in session.execute(select(*_RECORDED).where(*its).order_by(TABLE.c.id))]


def begin(session: Session, student: str, unit: str, its: Try) -> None:
    """Counts a try."""
    submission, kit, begun_at = astuple(its)
    row = {"student": student, "unit": unit, "submission": submission, "kit": kit, "begun_at": begun_at}
    session.execute(TABLE.insert().values(row))


def forget(session: Session, student: str, unit: str, its: Try, *, earlier: bool = False) -> None:
    """Counts a try no longer, which was stopped; earlier: nor any other of this file, which has a mark now."""
    mine = (TABLE.c.student == student, TABLE.c.unit == unit, TABLE.c.submission == its.submission)
    this = () if earlier else (TABLE.c.begun_at == its.begun_at,)
    session.execute(TABLE.delete().where(*mine, *this))

"""Copies what a gradebook holds of one unit, for a run that must change nothing."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Base, Gradebook, SubmittedNotebook
from sqlalchemy import Select, Table, inspect, select
from sqlalchemy.engine import make_url

from . import attempts, lateness, provenance
from .database import Database, reading_from

_OWN = (provenance.TABLE, attempts.TABLE, lateness.UNRESOLVED)
_OF_ALL_UNITS = ("course", "student")
_ROWS_AT_ONCE = 1_000


@contextmanager
def gradebook_copy(source: Database, unit: str, course_id: str) -> Iterator[Database | None]:
    """A copy in a temporary folder of all students and of one unit; None if there is no gradebook yet.

    The source is only read, and may be a server's that its reader must not write to. Raises CourseProblem.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Database(Path(folder), make_url("sqlite:///"))
        with reading_from(source) as session:
            if session is None:
                yield None
                return
            held, there = session.connection(), inspect(session.connection())
            gradebook = Gradebook(copy.address, course_id)
            try:
                engine = gradebook.engine
                for module in (provenance, attempts, lateness):
                    module.make_table(engine)
                with engine.begin() as connection:
                    connection.execute(Base.metadata.tables["course"].delete())  # nbgrader has put one there
                    for table in (*Base.metadata.sorted_tables, *_OWN):
                        if table in _OWN and not there.has_table(table.name):
                            continue
                        for rows in held.execute(_rows(table, unit)).mappings().partitions(_ROWS_AT_ONCE):
                            connection.execute(table.insert(), [dict(row) for row in rows])
            finally:
                gradebook.close()
        yield copy


def _rows(table: Table, unit: str) -> Select[Any]:
    """The rows of a table that are about the unit, or about all units."""
    query = select(table)
    if table.name in _OF_ALL_UNITS:
        return query
    if table.name == Assignment.__tablename__:
        return query.where(table.c.name == unit)
    if table is attempts.TABLE:
        return query.where(table.c.unit == unit)
    if table in _OWN:
        return query.where(table.c.submitted_notebook_id.in_(_ids(SubmittedNotebook.__table__, unit)))
    for key in table.foreign_keys:
        if key.column.table.name not in _OF_ALL_UNITS:
            query = query.where(key.parent.in_(_ids(key.column.table, unit)))
    return query


def _ids(table: Table, unit: str) -> Select[Any]:
    return _rows(table, unit).with_only_columns(table.c.id)

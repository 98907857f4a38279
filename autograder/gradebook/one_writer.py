"""One command at a time writes to a gradebook on a server, whichever machine it runs on.

The lock on a course's folder (`classroom.one_run`) says nothing to a machine with a folder of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import Connection

from . import database
from .course_directory import CourseProblem
from .database import said_in_a_sentence

_KEY = 0x6175746F67726164
"""The lock's number among those of the database: `autograd`."""
_ALIVE = "SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 15; SET tcp_keepalives_count = 4"
"""A machine that went down without a word holds the lock for two minutes, not for the system's two hours."""


class AlreadyLocked(CourseProblem):
    """Another process writes to the course."""


@contextmanager
def one_writer(root: Path, command: str) -> Iterator[None]:
    """Locks the gradebook of the course in this folder, if a server has it, as long as the process and its connection
    live. SQLite's is locked with the folder.

    command: what may hold the lock. Raises AlreadyLocked and CourseProblem.
    """
    its = database.of(root)
    if its.file:
        yield
        return
    engine = its.engine(isolation_level="AUTOCOMMIT")
    try:
        with said_in_a_sentence(root):
            connection = engine.connect()
        with connection:
            if not _is_taken(root, connection):
                raise AlreadyLocked(
                    f"Another `autograder {command}` is writing to the gradebook {its} already, perhaps on another "
                    "machine. Nothing was done; run this again when that one is done."
                )
            yield
    finally:
        engine.dispose()  # ends the connection, and with it the lock


def _is_taken(root: Path, connection: Connection) -> bool:
    """Whether the lock was free, and is now ours."""
    with said_in_a_sentence(root):
        connection.execute(text(_ALIVE))
        return bool(connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}))

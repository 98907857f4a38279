"""Locks a course, so that only one command at a time writes to it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.pool import NullPool

from . import database
from .course_directory import CourseProblem

LOCK = ".grading.lock"
_KEY = 0x6175746F67726164
"""Key of PostgreSQL's advisory lock: the letters `autograd` as a number."""
_KEEP_ALIVE = "SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 15; SET tcp_keepalives_count = 4"
"""Statement that ends the lock of a machine without power after two minutes instead of the system's two hours."""


class AlreadyLocked(CourseProblem):
    """Another process writes to the course."""


@contextmanager
def course_lock(root: Path, lock: str = LOCK, command: str = "grade`, `import` or `serve") -> Iterator[None]:
    """Lock the course for this process; the system releases the lock however the process ends.

    If a server has the gradebook, it is locked as well: another machine may have a folder of its own.

    lock: name of the file that is locked; only LOCK locks the gradebook. command: the commands that take this lock.
    Raises AlreadyLocked if another process holds the lock, and CourseProblem if nothing can be written there.
    """
    try:
        file = os.open(root / lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CourseProblem(
            f"The course folder {root} cannot be written to: {error.strerror}. Is the folder there and yours?"
        ) from None
    with ExitStack() as stack:
        stack.callback(os.close, file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _already_locked(command, f"the course {root} already") from None
        gradebook = database.of(root) if lock == LOCK else None
        if gradebook and not gradebook.file:
            engine = gradebook.engine(isolation_level="AUTOCOMMIT", poolclass=NullPool)
            with gradebook.explained_errors():
                connection = stack.enter_context(engine.connect())
                connection.execute(text(_KEEP_ALIVE))
                is_ours = connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY})
            if not is_ours:
                raise _already_locked(command, f"the gradebook {gradebook} already, perhaps on another machine")
        yield


def _already_locked(command: str, what: str) -> AlreadyLocked:
    return AlreadyLocked(
        f"Another `autograder {command}` is writing to {what}. Nothing was changed; run this command again when "
        "the other has ended."
    )

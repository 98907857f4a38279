"""Only one command at a time writes to a course: a second is refused before it has done anything."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from ..gradebook.course_directory import CourseProblem
from ..gradebook.one_writer import AlreadyLocked, one_writer

__all__ = ["LOCK", "AlreadyLocked", "one_run"]

LOCK = ".grading.lock"


@contextmanager
def one_run(root: Path, lock: str = LOCK, command: str = "grade`, `import` or `serve") -> Iterator[None]:
    """Locks the course for this process; the system releases the lock however the process ends. With the course its
    gradebook is locked, if a server has it: another machine may have a folder of its own.

    lock: the file that stands for what is locked. command: what may hold it then.
    Raises AlreadyLocked if another process holds the lock, and CourseProblem if nothing can be written there.
    """
    try:
        file = os.open(root / lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CourseProblem(
            f"The course folder {root} cannot be written to: {error.strerror}. Is the folder there and yours?"
        ) from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyLocked(
                f"Another `autograder {command}` is writing to the course {root} already. "
                "Nothing was done; run this again when that one is done."
            ) from None
        with one_writer(root, command) if lock == LOCK else nullcontext():
            yield
    finally:
        os.close(file)

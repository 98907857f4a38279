"""Only one `autograder grade` at a time writes to a course: a second is refused before it has done anything."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..gradebook.course_directory import CourseProblem

LOCK = ".grading.lock"


@contextmanager
def one_run(root: Path) -> Iterator[None]:
    """Locks the course for this process; the system releases the lock however the process ends.

    Raises CourseProblem if another process holds the lock, or nothing can be written there.
    """
    try:
        file = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CourseProblem(
            f"The course folder {root} cannot be written to: {error.strerror}. Is the folder there and yours?"
        ) from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseProblem(
                f"Another `autograder grade` is writing to the course {root} already. "
                "Nothing was done; run this again when that one is done."
            ) from None
        yield
    finally:
        os.close(file)

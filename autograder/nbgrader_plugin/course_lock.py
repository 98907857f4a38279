"""Who may write to a course: one `autograder grade` at a time, or any number of nbgrader's own Autograde."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .course_directory import CourseProblem

LOCK = ".grading.lock"


@contextmanager
def one_run(root: Path) -> Iterator[None]:
    """Holds the course for this process alone; the system lets go of it however the process ends.

    Raises CourseProblem where another process holds it, or nothing can be written there.
    """
    with _held(root, fcntl.LOCK_EX, "Another `autograder grade`, or an Autograde of nbgrader's,"):
        yield


@contextmanager
def one_submission(root: Path) -> Iterator[None]:
    """Holds the course for one submission, beside others; raises CourseProblem while `autograder grade` runs."""
    with _held(root, fcntl.LOCK_SH, "`autograder grade`"):
        yield


@contextmanager
def _held(root: Path, kind: int, holder: str) -> Iterator[None]:
    try:
        file = os.open(root / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CourseProblem(
            f"The course folder {root} cannot be written to: {error.strerror}. Is the folder there and yours?"
        ) from None
    try:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CourseProblem(
                f"{holder} is writing to the course {root} already. Nothing was done; run this again when that is done."
            ) from None
        yield
    finally:
        os.close(file)

"""Where `autograder serve` listens for `autograder mark`: sockets in the course's folder, of this account alone."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..course.folder import folder as course_folder

ALONE = "AUTOGRADER_ALONE"
"""In the environment, with anything for its value: `serve` lends no marker, and `mark` borrows none."""
ENDING = ".socket"
_LONGEST = 80
"""In bytes: no address of a socket may have more than 107."""


def folder() -> Path:
    """The folder of the sockets, one for each class that is served."""
    return course_folder() / ".cache" / "serving"


def sockets() -> list[Path]:
    """Those that are there, of which some may be left by a killed process."""
    if os.environ.get(ALONE):
        return []
    place = folder()
    try:
        its = place.lstat()  # no link, and nobody else may have put anything there
        is_own = stat.S_ISDIR(its.st_mode) and its.st_uid == os.geteuid() and not its.st_mode & 0o077
        return sorted(place.glob(f"*{ENDING}")) if is_own else []
    except OSError:
        return []


@contextmanager
def short(place: Path) -> Iterator[str]:
    """The folder under a path that is short enough for a socket's address; raises OSError."""
    if len(os.fsencode(place)) <= _LONGEST:
        yield str(place)
        return
    opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}"
    finally:
        os.close(opened)

"""Find the folder of the course that this process serves; it contains an `autograder.toml`.

The search starts in the folder named by an environment variable, or else in the working directory. The course is the
outermost folder with that file at or above the start, so that no file of a submission can turn its folder into a
course. If no folder has the file, and the variable is not set, the course is the checkout that the autograder runs
from. A class's folder is not a course, even if it has an `autograder.toml` of its own.
"""

import os
from functools import cache
from pathlib import Path

from ..errors import UserError

FILE = "autograder.toml"
VARIABLE = "AUTOGRADER_COURSE"
"""Name of the environment variable that names the course's folder."""
_OF_CLASS = ("source", "submitted", "gradebook.db", "roster.csv")
_OF_COURSE = ("exercises", "solutions")
_CHECKOUT = Path(__file__).resolve().parents[2]


class NoCourse(UserError):
    """Raised if no usable course is found; `str()` says where it was searched."""


@cache
def folder() -> Path:
    """Return the folder of the course that this process serves; raises NoCourse."""
    named = os.environ.get(VARIABLE)
    course = _outermost(Path(named) if named else Path.cwd())
    if course is None and not named and (_CHECKOUT / FILE).is_file():
        course = _CHECKOUT
    if course is None:
        where = f"{VARIABLE} names {named}" if named else f"this is {Path.cwd()}"
        raise NoCourse(
            f"There is no course here: {where}, but neither this folder nor a folder above it has an {FILE} "
            "that you may "
            "read."
        )
    package = course / "autograder" / "__init__.py"
    if course != _CHECKOUT and package.is_file():
        raise NoCourse(
            f"{package} would hide the engine from nbgrader: delete it. "
            f"If {course} is a checkout of the engine, use the `autograder` that belongs to it."
        )
    return course


def use(start: Path) -> None:
    """Let this process, and those it starts, serve the course at or above the folder `start`, if there is one."""
    course = _outermost(start)
    if course is not None:
        os.environ[VARIABLE] = str(course)
        folder.cache_clear()


def is_class(path: Path) -> bool:
    """Return whether a folder is a class's folder: it has students' files or units, but no exercises or solutions."""
    return any((path / name).exists() for name in _OF_CLASS) and not any((path / n).is_dir() for n in _OF_COURSE)


def _outermost(start: Path) -> Path | None:
    start = start.resolve()
    return next((path for path in reversed([start, *start.parents]) if _is_course(path)), None)


def _is_course(path: Path) -> bool:
    try:
        return (path / FILE).is_file() and not is_class(path)
    except PermissionError:  # to enter the folder
        return False

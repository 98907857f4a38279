"""The course's folder, which is recognised by its `autograder.toml`.

A process serves one course. It is the one named in the environment, else the outermost folder with that file at or
above the working directory, else the checkout that the autograder runs from. The outermost, because a file that a
student submitted must not turn its folder into a course. In a class's folder the file only says how to read the roster.
"""

import os
from functools import cache
from pathlib import Path

from ..errors import UserError

FILE = "autograder.toml"
VARIABLE = "AUTOGRADER_COURSE"
"""Environment variable with the course's folder."""
_OF_CLASS = ("source", "submitted", "gradebook.db", "roster.csv")
_OF_COURSE = ("exercises", "solutions")
_CHECKOUT = Path(__file__).resolve().parents[2]


class NoCourse(UserError):
    """There is no course here; `str()` says what was searched for and where."""


@cache
def folder() -> Path:
    """Return the course's folder; raises NoCourse."""
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
    """Set the course of this process, and of those that it starts, to the one at or above a folder, if there is one."""
    course = _outermost(start)
    if course is not None:
        os.environ[VARIABLE] = str(course)
        folder.cache_clear()


def is_class(path: Path) -> bool:
    """Return whether a folder is a class's: it has students or units, but no solutions."""
    return any((path / name).exists() for name in _OF_CLASS) and not any((path / n).is_dir() for n in _OF_COURSE)


def _outermost(start: Path) -> Path | None:
    start = start.resolve()
    return next((path for path in reversed([start, *start.parents]) if _is_course(path)), None)


def _is_course(path: Path) -> bool:
    try:
        return (path / FILE).is_file() and not is_class(path)
    except PermissionError:  # to enter the folder
        return False

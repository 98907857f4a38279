"""Which course it is: the folder with its texts, solutions, graders and mistakes, told by its `autograder.toml`.

A process serves one course. It is the one named in the environment, else the outermost folder with that file at or
above the working directory, else the checkout that this engine runs from. Outermost, because a file that a student
submitted must not make its folder a course. In a class's folder the file configures how the roster is read.
"""

import os
from functools import cache
from pathlib import Path

FILE = "autograder.toml"
VARIABLE = "AUTOGRADER_COURSE"
"""In the environment: the course's folder."""
_OF_CLASS = ("source", "submitted", "gradebook.db", "roster.csv")
_OF_COURSE = ("exercises", "solutions")
_CHECKOUT = Path(__file__).resolve().parents[2]


class NoCourse(Exception):
    """There is no course here; `str()` says what was looked for and where."""


@cache
def folder() -> Path:
    """The course's folder; raises NoCourse."""
    named = os.environ.get(VARIABLE)
    found = _outermost(Path(named) if named else Path.cwd())
    if found is None and not named and (_CHECKOUT / FILE).is_file():
        found = _CHECKOUT
    if found is None:
        where = f"{VARIABLE} names {named}" if named else f"this is {Path.cwd()}"
        raise NoCourse(
            f"There is no course here: {where}, and neither it nor a folder above it has an {FILE} that you may read."
        )
    package = found / "autograder" / "__init__.py"
    if found != _CHECKOUT and package.is_file():
        raise NoCourse(
            f"{package} would hide the engine from nbgrader: delete it. "
            f"If {found} is a checkout of the engine, use the `autograder` that belongs to it."
        )
    return found


def use(start: Path) -> None:
    """Makes the course at or above a folder this process's, and that of what it starts; without one, does nothing."""
    found = _outermost(start)
    if found is not None:
        os.environ[VARIABLE] = str(found)
        folder.cache_clear()


def _outermost(start: Path) -> Path | None:
    start = start.resolve()
    return next((place for place in reversed([start, *start.parents]) if _is_course(place)), None)


def is_class(place: Path) -> bool:
    """Return whether it is a class's folder: there are students or units in it, but no answers."""
    return any((place / name).exists() for name in _OF_CLASS) and not any((place / n).is_dir() for n in _OF_COURSE)


def _is_course(place: Path) -> bool:
    try:
        return (place / FILE).is_file() and not is_class(place)
    except PermissionError:  # to pass through the folder
        return False

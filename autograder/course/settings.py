"""The course's folder, and the settings in its autograder.toml.

The search for the folder starts in the folder named by an environment variable, or else in the working directory. The
course is the outermost folder with an autograder.toml at or above the start, so that no file of a submission can turn
its folder into a course. If no folder has the file, and the variable is not set, the course is the checkout that the
autograder runs from. A class's folder is not a course, even if it has an autograder.toml of its own.

The settings are isolation and limits of submissions, roster, late penalty, and released files.
"""

import os
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from .. import UserError
from ..sandbox.isolation import CHECK
from ..sandbox.limits import Limits, PageLimits
from .late_penalty import LatePenalty

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


_LEAST = {"open_files": 32, "memory_megabytes": 64}
_MOST = 1_000_000
_S = TypeVar("_S", "ClassSettings", "Settings")


class BadSettings(UserError):
    """Raised if an autograder.toml cannot be used; `str()` gives the reason."""


class Isolation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The required isolation level; `sandbox.isolation.choose` explains the fields."""

    require: Literal["A", "B", "best", "none"] = "best"
    """The level without which nothing is graded; best: A where it is available, otherwise B."""
    trust_submissions: bool = False
    """True if submissions run without isolation where no level is available, or if none is required."""


class HandingIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The instructions for submitting that are put at the end of each notebook and in the README next to it."""

    text: str = """Save the notebook first: changes that you have not saved are not submitted.

- In JupyterLab with nbgrader: open *Assignment List* in the menu *Nbgrader*, and press **Submit**.
- Elsewhere: upload the file `{notebook}` where your course takes files. Keep its name.

The notebook need not be complete. Submit again as often as you like: your last submission before the deadline counts.""
    """
    """Markdown; empty for none."""

    def section(self, notebook: str) -> str:
        """Return the instructions with a heading, for a notebook of this file name; empty if there are none."""
        return f"## How to submit\n\n{self.text.strip().replace('{notebook}', notebook)}" if self.text.strip() else ""


class RosterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings for reading a class's roster."""

    id_column: str | None = None
    """Name of the column with the students' ids; None to use the first column whose values can name folders."""
    header: dict[str, str] = {}
    """The English column name for each column name of a roster in another language."""

    def __hash__(self) -> int:
        return hash((self.id_column, *self.header.items()))


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings that a course's autograder.toml can have."""

    isolation: Isolation
    limits: Limits
    pages: PageLimits = PageLimits()
    handing_in: HandingIn = HandingIn()
    roster: RosterSettings = RosterSettings()
    late_penalty: LatePenalty | None = None
    """None if late submissions lose nothing, or if nbgrader_config.py sets the penalty."""
    check: str = CHECK
    """Name of the module from which students' notebooks import `check`."""
    forbids: tuple[str, ...] = ()
    """The libraries that answers may not call, for all exercises without a list of their own."""
    show_repair: bool = False
    """True if the student check may show a change that makes all examples pass, not only the line it is in."""
    assistants: bool = True
    """True if each released folder has an AGENTS.md, which asks AI assistants to tutor and not to write answers."""
    files_at: str = ""
    """Address from which a notebook in a single file fetches a unit's files, before the unit's and the file's name."""

    def trusting(self) -> "Settings":
        """Return these settings with `trust_submissions`, so that submissions run even if no isolation is available."""
        return msgspec.structs.replace(self, isolation=msgspec.structs.replace(self.isolation, trust_submissions=True))


class ClassSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings that an autograder.toml in a class's folder can have."""

    roster: RosterSettings = RosterSettings()
    late_penalty: LatePenalty | None = None


def of_roster(root: Path) -> RosterSettings:
    """Return the roster settings for a class. Its own autograder.toml takes precedence over the course's.

    root: the class's folder. Raises BadSettings and NoCourse.
    """
    of_course, of_class = load().roster, _of_class(root).roster
    return RosterSettings(of_class.id_column or of_course.id_column, {**of_course.header, **of_class.header})


def of_late_penalty(root: Path) -> LatePenalty | None:
    """Return the late penalty for a class: its own, or else the course's; None if no autograder.toml has one.

    root: the class's folder. Raises BadSettings and NoCourse.
    """
    return _of_class(root).late_penalty or load().late_penalty


def _of_class(root: Path) -> ClassSettings:
    """Return the settings of a class's own autograder.toml; the defaults if it has none."""
    path = root / FILE
    if path.resolve() == (folder() / FILE).resolve() or not path.is_file():
        return ClassSettings()
    hint = (
        " A class's own autograder.toml may have only [roster] and [late_penalty]; all other settings are in "
        f"{folder() / FILE}."
    )
    return _read(path, ClassSettings, hint)


def load(path: Path | None = None) -> Settings:
    """Read the settings in a file, by default the course's autograder.toml; raises BadSettings and NoCourse."""
    path = path or folder() / FILE
    settings = _read(path, Settings)
    asdict = msgspec.structs.asdict
    for name, value in [*asdict(settings.limits).items(), *asdict(settings.pages).items()]:  # which share names
        least = _LEAST.get(name, 1)
        if not least <= value <= _MOST:
            raise _unusable(path, f"{name} must be from {least} to {_MOST}")
    if not settings.check.isidentifier():
        raise _unusable(path, f"check must be the name of a Python module, like {CHECK}")
    if not re.fullmatch(r"((https://|http://(localhost|127\.0\.0\.1)[:/])[^\s\"\\{}]+)?", settings.files_at):
        raise _unusable(path, "files_at must be empty, or an address that begins with https://")
    return settings


def _read(path: Path, kind: type[_S], hint: str = "") -> _S:
    try:
        settings = msgspec.convert(tomllib.loads(path.read_text()), kind)
    except OSError as error:
        raise BadSettings(f"The settings {path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError, msgspec.ValidationError) as error:  # of endless numbers and lists too
        raise _unusable(path, str(error), hint) from None
    if settings.late_penalty and (fault := settings.late_penalty.fault()):
        raise _unusable(path, f"in [late_penalty] {fault}")
    return settings


def _unusable(path: Path, reason: str, hint: str = "") -> BadSettings:
    return BadSettings(f"The settings {path} cannot be used: {reason}.{hint}")

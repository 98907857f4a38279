"""The settings in autograder.toml: execution of submissions, the roster's columns, the penalty for lateness."""

import re
import tomllib
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from ..errors import UserError
from ..sandbox.launch import CHECK
from ..sandbox.limits import Limits, PageLimits
from .folder import FILE, folder
from .late_penalty import LatePenalty

_LEAST = {"open_files": 32, "memory_megabytes": 64}
_MOST = 1_000_000
_S = TypeVar("_S", "ClassSettings", "Settings")


class BadSettings(UserError):
    """The settings cannot be used; `str()` gives the reason."""


class Isolation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The isolation of submissions. `sandbox.isolation` describes the levels."""

    require: Literal["A", "B", "best", "none"] = "best"
    """The level without which nothing is graded; best: A where it is available, otherwise B."""
    trust_submissions: bool = False
    """True if submissions run without isolation where no level is available, or if none is required."""


class HandingIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Instructions on submitting, at the end of each notebook and in the README next to it."""

    text: str = """Save the notebook first: changes that you have not saved are not submitted.

- In JupyterLab with nbgrader: open *Assignment List* in the menu *Nbgrader*, and press **Submit**.
- Elsewhere: upload the file `{notebook}` where your course takes files. Keep its name.

The notebook need not be complete. Submit again as often as you like: your last submission before the deadline counts.""
    """
    """Markdown; empty for none."""

    def section(self, notebook: str) -> str:
        """Return the instructions for a notebook of this name below a heading; empty if there are none."""
        return f"## How to submit\n\n{self.text.strip().replace('{notebook}', notebook)}" if self.text.strip() else ""


class RosterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reading of the class's roster."""

    id_column: str | None = None
    """The column with the students' ids; None for the first with values that can name a folder."""
    header: dict[str, str] = {}
    """Column names of the roster in another language, each with the English one."""

    def __hash__(self) -> int:
        return hash((self.id_column, *self.header.items()))


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a course."""

    isolation: Isolation
    limits: Limits
    pages: PageLimits = PageLimits()
    handing_in: HandingIn = HandingIn()
    roster: RosterSettings = RosterSettings()
    late_penalty: LatePenalty | None = None
    """None if late submissions lose nothing, or if nbgrader_config.py sets the penalty."""
    check: str = CHECK
    """Name of the module that students import `check` from."""
    forbids: tuple[str, ...] = ()
    """The libraries that answers may not call in exercises without a list of their own."""
    show_repair: bool = False
    """True if the student check may show the change with which all examples pass, not only its line."""
    assistants: bool = True
    """True if each released folder has an AGENTS.md, which asks AI assistants to tutor and not to write answers."""
    files_at: str = ""
    """Address that a notebook in a single file fetches its files from, followed by the unit's and the file's name."""

    def trusting(self) -> "Settings":
        """Return the same settings, but for executing without isolation if no level is available."""
        return msgspec.structs.replace(self, isolation=msgspec.structs.replace(self.isolation, trust_submissions=True))


class ClassSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings in a class's folder."""

    roster: RosterSettings = RosterSettings()
    late_penalty: LatePenalty | None = None


def of_roster(root: Path) -> RosterSettings:
    """Return the roster settings of a class's folder: its own autograder.toml first, then the course's.

    Raises BadSettings and NoCourse.
    """
    of_course, of_class = load().roster, _of_class(root).roster
    return RosterSettings(of_class.id_column or of_course.id_column, {**of_course.header, **of_class.header})


def of_late_penalty(root: Path) -> LatePenalty | None:
    """Return the late penalty of a class's folder, or else the course's; None if no autograder.toml has one.

    Raises BadSettings and NoCourse.
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
    """Return the settings in a file, by default the course's; raises BadSettings and NoCourse."""
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

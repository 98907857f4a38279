"""The course's folder, and the settings in its autograder.toml.

The search for the folder starts in the folder named by an environment variable, or else in the working directory. The
course is the outermost folder with an autograder.toml at or above the start, so that no file of a submission can turn
its folder into a course. If no folder has the file, and the variable is not set, the course is the checkout that the
autograder runs from. A class's folder is not a course, even if it has an autograder.toml of its own.

The settings are isolation and limits of submissions, roster, released files, and the late penalty: its rule, and the
points that a delay costs.

The course's secret, from which its hidden cases are drawn, is in a file of its own, which git ignores and which is
never released. Without the file, only the names of hidden tests seed their cases. Then everybody with a copy of the
repository can compute the cases.
"""

import os
import re
import secrets
import subprocess
import tomllib
from contextlib import suppress
from datetime import timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from .. import UserError, output_files
from ..sandbox.isolation import CHECK
from ..sandbox.limits import Limits, PageLimits

DAY = timedelta(days=1)
FILE = "autograder.toml"
VARIABLE = "AUTOGRADER_COURSE"
"""Name of the environment variable that names the course's folder."""
_OF_CLASS = ("source", "submitted", "gradebook.db", "roster.csv")
_OF_COURSE = ("exercises", "solutions")
_CHECKOUT = Path(__file__).resolve().parents[2]
SECRET_FILE = "case_secret.txt"
_NOT_IGNORED = 1
"""Exit status of `git check-ignore` for a file that git does not ignore. Outside a repository the status is another."""


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
_DURATION = re.compile(r"(?:(\d{1,4})d)?\s*(?:(\d{1,5})h)?\s*(?:(\d{1,6})m)?", re.ASCII)
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

The notebook need not be complete. Submit again as often as you like: your last submission before the deadline counts.
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


def duration(text: str) -> timedelta | None:
    """Parse a duration such as `2d`, `36h`, `90m` or `1d 12h`; return None if the text is not one."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes = (int(digits or 0) for digits in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes)


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The penalty for submissions that are later than `later_than` but not later than that of the next step."""

    later_than: str
    """A duration such as `12h` or `2d`; `0h` for any delay."""
    percent: float | None = None
    """Percentage of the score that is deducted; None if `points` is set."""
    points: float | None = None
    """Points that are deducted; None if `percent` is set."""

    @property
    def after(self) -> timedelta | None:
        """The delay after which the step applies; None if `later_than` is no duration."""
        return duration(self.later_than)

    @property
    def charge(self) -> float:
        """The deduction: `percent` or `points`, whichever is set."""
        return self.percent if self.percent is not None else self.points or 0.0


class LatePenalty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule by which late submissions lose points, and the days that a student may be late without losing points.

    Example: `LatePenalty("linear", percent_a_day=10).points(30.0, timedelta(hours=25))` is 6.0, for two days begun.
    """

    rule: Literal["none", "zero", "linear", "steps"]
    """zero: a late submission gets 0 points. linear: each day costs the same, a part counts as a day. steps: `Step`."""
    percent_a_day: float | None = None
    """For linear: percentage of the score that each day costs; None if `points_a_day` is set."""
    points_a_day: float | None = None
    """For linear: points that each day costs; None if `percent_a_day` is set."""
    steps: tuple[Step, ...] = ()
    """For steps: the penalties, in the order of their delays."""
    late_days: int = 0
    """Days that a student may be late without penalty, in all units together; spent in the order of the due dates."""

    def fault(self) -> str:
        """Return why these settings cannot be used, as a part of a sentence; empty if they can."""
        rates = [rate for rate in (self.percent_a_day, self.points_a_day) if rate is not None]
        if self.rule != "linear" and rates:
            return 'percent_a_day and points_a_day need rule = "linear"'
        if self.rule == "linear" and (len(rates) != 1 or not 0 < rates[0] <= _MOST):
            return 'rule = "linear" needs either percent_a_day or points_a_day, above 0'
        if self.rule != "steps" and self.steps:
            return 'steps need rule = "steps"'
        if not 0 <= self.late_days <= _MOST:
            return f"late_days must be from 0 to {_MOST}"
        if self.late_days and self.rule == "none":
            return 'late_days need a rule for submissions after the late days: "zero", "linear" or "steps"'
        return self._fault_in_steps() if self.rule == "steps" else ""

    def _fault_in_steps(self) -> str:
        if not self.steps:
            return 'rule = "steps" needs steps, such as [{ later_than = "0h", percent = 10 }]'
        if wrong := next((step for step in self.steps if step.after is None), None):
            return (
                f"later_than = {wrong.later_than!r} is not a duration; write days, hours or minutes, such as 2d or 12h"
            )
        if len({step.percent is None for step in self.steps}) > 1 or any(
            (step.percent is None) == (step.points is None) for step in self.steps
        ):
            return "give percent in every step, or points in every step"
        if not all(0 <= step.charge <= (_MOST if step.percent is None else 100) for step in self.steps):
            return "percent must be from 0 to 100, and points from 0"
        delays = pairwise(step.after or timedelta() for step in self.steps)
        charges = pairwise(step.charge for step in self.steps)
        if any(one >= other for one, other in delays) or any(one >= other for one, other in charges):
            return "each step must be later than the one before, and deduct more"
        return ""

    def points(self, score: float, late: timedelta) -> float:
        """Return the points that a submission loses, at most its whole score. Late days are not considered.

        score: in points. late: the delay.
        """
        if self.points_a_day is not None or any(step.points is not None for step in self.steps):
            return min(self._charge(late), score)
        return score * self._charge(late) / 100

    def days_spent(self, late: timedelta, left: int) -> int:
        """Return the number of late days that are spent on a submission. left: the days that the student still has.

        It is the smallest number with which the penalty is as low as with all days that are left.
        """
        most = min(left, _days_begun(late))
        lowest = self._charge(late - most * DAY)
        return next(days for days in range(most + 1) if self._charge(late - days * DAY) == lowest)

    def _charge(self, late: timedelta) -> float:
        """Return the percentage of the score, or the points, that a delay costs."""
        if late <= timedelta() or self.rule == "none":
            return 0.0
        if self.rule == "zero":
            return 100.0
        if self.percent_a_day is not None:
            return min(100.0, self.percent_a_day * _days_begun(late))
        if self.points_a_day is not None:
            return self.points_a_day * _days_begun(late)
        return next((step.charge for step in reversed(self.steps) if (step.after or timedelta()) < late), 0.0)


def _days_begun(late: timedelta) -> int:
    return max(0, -(-late // DAY))


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


class BadSecret(UserError):
    """Raised if the file cannot be used or must not be written; `str()` says why and what to do."""


def read_secret() -> str:
    """Return the course's secret; empty if the course has none.

    Raises BadSecret if the file is unreadable or empty, because grading with the published cases would go unnoticed.
    """
    path = folder() / SECRET_FILE
    try:
        secret = path.read_text().strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadSecret(f"{path} cannot be read ({error}). Without it, the hidden cases cannot be drawn.") from None
    if not secret:
        raise BadSecret(f"{path} is empty. Delete it; then `autograder reseed` writes a new secret.")
    return secret


def write_secret() -> Path:
    """Write a new secret into the course's folder and return the file's path.

    Raises BadSecret if the course has a secret, or is a git repository that does not ignore the file. Raises
    NotWritable.
    """
    path = folder() / SECRET_FILE
    if os.path.lexists(path):
        raise BadSecret(
            f"{path} exists already, and submissions may have been graded with it. For a new secret, delete it first; "
            "then `autograder grade` grades every submission again."
        )
    with suppress(FileNotFoundError):  # git is not installed
        command = ["git", "check-ignore", "--quiet", SECRET_FILE]
        if subprocess.run(command, cwd=folder(), capture_output=True, check=False).returncode == _NOT_IGNORED:
            raise BadSecret(
                f"git does not ignore {SECRET_FILE}, so the next commit could publish the secret. First add the line "
                f"`/{SECRET_FILE}` to {folder() / '.gitignore'}."
            )
    output_files.write({path: f"{secrets.token_hex(16)}\n".encode()}, 0o600)
    return path

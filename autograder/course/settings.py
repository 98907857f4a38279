"""How submissions are run, and the roster is read: what autograder.toml says."""

import re
import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from ..formatting.limits import PageLimits
from ..sandbox.launch import CHECK
from ..sandbox.limits import Limits
from .folder import FILE, folder

_LEAST = {"open_files": 32, "memory_megabytes": 64}
_MOST = 1_000_000


class BadSettings(Exception):
    """The settings cannot be used; `str()` says why."""


class Isolation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The isolation to run submissions with: `sandbox.isolation` says what the levels are."""

    require: Literal["A", "B", "best", "none"] = "best"
    trust_submissions: bool = False


class HandingIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What students read about it, at the end of a notebook and in the README beside it."""

    text: str = """Save the notebook first: what is not saved is not handed in.

- In JupyterLab with nbgrader: open *Assignment List* in the menu *Nbgrader*, and press **Submit**.
- Elsewhere: upload the file `{notebook}` where your course takes files. Keep its name.

It need not be complete. Hand in again whenever you like: until the deadline, the last one counts."""
    """Markdown; empty for none."""

    def told(self, notebook: str) -> str:
        """The text about this file, below a heading; empty if there is none."""
        return f"## How to hand in\n\n{self.text.strip().replace('{notebook}', notebook)}" if self.text.strip() else ""


class RosterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the class's roster is read."""

    id_column: str | None = None
    """The column with the students' ids; None for the first that can name a folder."""
    header: dict[str, str] = {}
    """Words of the roster's header in another language, each with the English one."""

    def __hash__(self) -> int:
        return hash((self.id_column, *self.header.items()))


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything in the file."""

    isolation: Isolation
    limits: Limits
    pages: PageLimits = PageLimits()
    handing_in: HandingIn = HandingIn()
    roster: RosterSettings = RosterSettings()
    check: str = CHECK
    """What the module is called that students get, and import `check` from."""
    forbids: tuple[str, ...] = ()
    """The libraries that an answer may not call where its exercise does not say."""
    files_at: str = ""
    """Where a notebook that stands alone fetches its files: at this address, with the unit's name and the file's."""

    def trusting(self) -> "Settings":
        """The same, but run without isolation where no level is available."""
        return msgspec.structs.replace(self, isolation=msgspec.structs.replace(self.isolation, trust_submissions=True))


class ClassSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything in the file of a class's folder."""

    roster: RosterSettings = RosterSettings()


def of_roster(root: Path) -> RosterSettings:
    """Return how the roster of a class's folder is read: as its own autograder.toml says, then as the course's does.

    Raise BadSettings and NoCourse.
    """
    its = load().roster
    own = root / FILE
    if own.resolve() == (folder() / FILE).resolve() or not own.is_file():
        return its
    try:
        of_class = msgspec.convert(tomllib.loads(own.read_text()), ClassSettings).roster
    except OSError as error:
        raise BadSettings(f"The settings {own} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise BadSettings(
            f"The settings {own} cannot be used: {error}. In a class's folder they have [roster] only; all else is in "
            f"{folder() / FILE}."
        ) from None
    return RosterSettings(of_class.id_column or its.id_column, {**its.header, **of_class.header})


def load(path: Path | None = None) -> Settings:
    """The settings of a file, or of the course; raises BadSettings and NoCourse."""
    path = path or folder() / FILE
    try:
        settings = msgspec.convert(tomllib.loads(path.read_text()), Settings)
    except OSError as error:
        raise BadSettings(f"The settings {path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError, msgspec.ValidationError) as error:  # of endless numbers and lists too
        raise BadSettings(f"The settings {path} cannot be used: {error}.") from None
    for name, value in [
        *msgspec.structs.asdict(settings.limits).items(),
        *msgspec.structs.asdict(settings.pages).items(),
    ]:
        least = _LEAST.get(name, 1)
        if not least <= value <= _MOST:
            raise BadSettings(f"The settings {path} cannot be used: {name} must be from {least} to {_MOST}.")
    if not settings.check.isidentifier():
        raise BadSettings(f"The settings {path} cannot be used: check is the name of a Python module, like {CHECK}.")
    if not re.fullmatch(r"((https://|http://(localhost|127\.0\.0\.1)[:/])[^\s\"\\{}]+)?", settings.files_at):
        raise BadSettings(
            f"The settings {path} cannot be used: files_at is an address that begins with https://, or empty."
        )
    return settings

"""What is kept of the zip files that were imported, in COURSE/imported/: names for feedback, and what was replaced."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..classroom import whole_files
from .file_names import Platform

FOLDER = "imported"
_REPLACED = "replaced"
_MODE = 0o644


class BadRecord(Exception):
    """What is kept cannot be read; `str()` says why and what to do."""


class Origin(msgspec.Struct, frozen=True):
    """Where a student's submission came from."""

    platform: Platform
    returned: str
    """What the name of a file of feedback begins with: see `file_names`."""


def origins(root: Path, unit: str) -> dict[str, Origin]:
    """By student, for a unit; empty if nothing was imported. Raises BadRecord."""
    path = _record(root, unit)
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Origin])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise BadRecord(f"{path} cannot be read: {error}. Delete it and import the zip file again.") from None


def keep_origins(root: Path, unit: str, found: Mapping[str, Origin]) -> None:
    """Adds these students to what is kept. Raises BadRecord and OSError."""
    everyone = {**origins(root, unit), **found}
    path = _record(root, unit)
    path.parent.mkdir(exist_ok=True)
    whole_files.write(path, msgspec.json.format(msgspec.json.encode(everyone)), _MODE)


def keep_replaced(root: Path, submission: Path) -> Path:
    """Moves a submission out of the way of a new one; returns where it is now. Raises OSError."""
    student, unit = submission.parent.name, submission.name
    place = root / FOLDER / _REPLACED / student / unit
    place.mkdir(parents=True, exist_ok=True)
    number = max((int(one.name) for one in place.iterdir() if one.name.isdecimal()), default=0) + 1
    return Path(shutil.move(submission, place / str(number)))


def _record(root: Path, unit: str) -> Path:
    return root / FOLDER / f"{unit}.json"

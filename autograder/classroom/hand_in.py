"""What each student handed in: which file of theirs is the notebook, and when it came."""

import hashlib
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from .. import notebook

TIMESTAMP = "timestamp.txt"


@dataclass(frozen=True)
class HandIn:
    """One student's submission. `notebook` is None where there is none."""

    student: str
    notebook: Path | None
    note: str = ""
    """What the student should know about which file was marked, or why none was."""


def hand_ins(submitted: Path, unit: str, students: list[str]) -> list[HandIn]:
    """What each of these students handed in for the unit, in `submitted`/<student>/<unit>/."""
    return [_hand_in(student, submitted / student / unit, unit) for student in students]


def who_handed_in(submitted: Path, unit: str) -> list[str]:
    """The students with a folder for the unit, in alphabetical order."""
    return sorted(student.name for student in submitted.glob("[!.]*") if _is_folder(student / unit))


def passed_over(submitted: Path, units: Collection[str]) -> list[str]:
    """What lies among the submissions, as a path within the folder, where no submission of any unit is looked for."""
    there = sorted(submitted.glob("[!.]*"))
    within = [path for student in there if _is_folder(student) for path in sorted(student.glob("[!.]*"))]
    loose = [path for path in there if not _is_folder(path)]
    passed = loose + [path for path in within if path.name not in units or not _is_folder(path)]
    return [notebook.printable(str(path.relative_to(submitted))) for path in passed]


def digest(file: Path) -> str | None:
    """SHA-256 of a notebook file; None where it is none that could be marked."""
    try:
        return hashlib.sha256(notebook.read(file)).hexdigest()
    except notebook.Damaged:
        return None


_MOST_NAMED = 5
_LONGEST_STAMP = 100  # bytes; nbgrader writes 30


def timestamp(hand_in: HandIn) -> bytes | None:
    """What nbgrader's `collect` wrote beside the notebook of when it was handed in; None where there is nothing."""
    assert hand_in.notebook is not None
    if hand_in.notebook.is_symlink():
        return None  # what lies beside it may be another's
    file = hand_in.notebook.with_name(TIMESTAMP)
    try:
        status = file.lstat()
        return file.read_bytes() if stat.S_ISREG(status.st_mode) and status.st_size <= _LONGEST_STAMP else None
    except OSError:
        return None


def time_in(stamp: bytes | None) -> datetime | None:
    """The time that a timestamp says, in UTC; None where it says none."""
    try:
        return parse_utc((stamp or b"").decode().strip()) if stamp and stamp.strip() else None
    except Exception:  # dateutil documents two, and raises others: OSError for a time zone that it looks for as a file
        return None


def _hand_in(student: str, folder: Path, unit: str) -> HandIn:
    expected = folder / f"{unit}.ipynb"
    links = [path for path in (folder.parent, folder) if path.is_symlink()]
    if links and os.path.lexists(folder):  # to the solutions, perhaps, or to a classmate's folder
        return HandIn(student, links[0])
    handed_in = sorted(path for path in folder.glob("[!.]*") if path.name != TIMESTAMP) if _is_folder(folder) else []
    notebooks = [path for path in handed_in if path.suffix.lower() == ".ipynb"]
    if os.path.lexists(expected):
        return HandIn(student, expected, _beside(expected, notebooks))
    recognised = [path for path in notebooks if _belongs_to(path, unit)]
    if recognised:
        newest = max(recognised, key=lambda path: path.stat().st_mtime)
        called = f"Marked from {_names([newest])}; the notebook is called `{unit}.ipynb`."
        return HandIn(student, newest, f"{called} {_beside(newest, notebooks)}".strip())
    if notebooks:
        return HandIn(student, notebooks[0], f"There is no `{unit}.ipynb`; {_names(notebooks[:1])} was looked at.")
    if handed_in:
        return HandIn(student, None, f"There is no notebook, only {_names(handed_in)}. Hand in `{unit}.ipynb` itself.")
    return HandIn(student, None, "Nothing was handed in.")


def _beside(marked: Path, notebooks: list[Path]) -> str:
    """What to say of other notebooks than the one that is marked."""
    others = [path for path in notebooks if path != marked]
    return f"Also there, and not marked: {_names(others)}." if others else ""


def _names(paths: list[Path]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(f"`{notebook.printable(path.name)}`" for path in paths[:_MOST_NAMED]) + more


def _is_folder(path: Path) -> bool:
    """Unlike Path's own tests it knows no path that is an error, such as a link to a name that is too long."""
    return os.path.isdir(path)  # noqa: PTH112


def _belongs_to(path: Path, unit: str) -> bool:
    try:
        return notebook.unit_of(notebook.parse(notebook.read(path))).name == unit
    except notebook.Damaged:
        return False

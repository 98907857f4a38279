"""What each student handed in: which file of theirs is the notebook, and a clean folder of it for nbgrader."""

import shutil
from dataclasses import dataclass
from pathlib import Path

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
    return sorted(folder.parent.name for folder in submitted.glob(f"[!.]*/{unit}") if folder.is_dir())


def stage(hand_in: HandIn, unit: str, staging: Path) -> None:
    """Puts the notebook under the name that nbgrader wants into staging/<student>/<unit>/, with its timestamp.

    Nothing else that stands in the student's folder is needed; the student's own files are left alone.
    """
    assert hand_in.notebook is not None
    folder = staging / hand_in.student / unit
    folder.mkdir(parents=True)
    try:
        content = notebook.read(hand_in.notebook)
    except notebook.Damaged:
        content = b""  # the report says why; nbgrader needs a file to record it
    (folder / f"{unit}.ipynb").write_bytes(content)
    timestamp = hand_in.notebook.with_name(TIMESTAMP)
    if timestamp.is_file() and not timestamp.is_symlink():
        shutil.copyfile(timestamp, folder / TIMESTAMP)


def _hand_in(student: str, folder: Path, unit: str) -> HandIn:
    expected = folder / f"{unit}.ipynb"
    if expected.exists() or expected.is_symlink():
        return HandIn(student, expected)
    others = sorted(folder.glob("*.ipynb")) if folder.is_dir() else []
    recognised = [path for path in others if _belongs_to(path, unit)]
    if recognised:
        newest = max(recognised, key=lambda path: path.stat().st_mtime)
        name = notebook.printable(newest.name)
        return HandIn(student, newest, f"Marked from `{name}`; the notebook is called `{unit}.ipynb`.")
    if others:
        name = notebook.printable(others[0].name)
        return HandIn(student, others[0], f"There is no `{unit}.ipynb`; `{name}` was looked at.")
    return HandIn(student, None, "Nothing was handed in.")


def _belongs_to(path: Path, unit: str) -> bool:
    try:
        return notebook.unit_of(notebook.parse(notebook.read(path))).name == unit
    except notebook.Damaged:
        return False

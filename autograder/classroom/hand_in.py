"""What each student handed in: which of their files is the notebook, what is in it, and when it came.

The folder of submissions is opened once, and everything in it is opened from there: see `handed_in.opened_folder`.
"""

import errno
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from .. import course, notebook
from ..course.cells import unit_of
from ..gradebook.time_stamp import TIMESTAMP, stamp_in
from ..handed_in.notebook_file import NotebookFile, digest_in, read_in, unreadable
from ..handed_in.opened_folder import OpenedFolder

_NOTHING = "Nothing was handed in."
_LOOKED_THROUGH = "Its files are being looked through."
_MOST_NAMED = 5
_MOST_LOOKED_AT = 20
"""How many notebooks under other names are searched for the unit, newest first."""
_MOST_BYTES_LOOKED_AT = 32 << 20
"""Of these together, not counting the newest, which may be as large as any notebook."""
_OF_PROGRAMS = {".ipynb_checkpoints", ".DS_Store", ".git", ".gitignore", ".gitkeep", ".keep"}
"""What programs leave behind and nobody hands in. Files beginning with `._`, which macOS adds, count as such too."""


class NotKnownYet(Exception):
    """Which notebook is of the unit is being found out; the student's submission is looked at again later."""


Newest = Callable[[str, OpenedFolder, list[str]], str | None]
"""Which of the notebooks in a student's folder is the newest of the unit; raises NotKnownYet."""


@dataclass(frozen=True)
class HandIn:
    """One student's submission. `notebook` is the file's name in the student's folder, None if there is none."""

    student: str
    notebook: str | None
    note: str = ""
    """What the student should know about which file was marked, or why none was."""


@dataclass(frozen=True)
class Read:
    """What was read from a submission at one moment."""

    file: NotebookFile
    stamp: bytes | None
    """The time of handing in that `nbgrader collect` wrote next to the notebook; None if it is not there."""


class Submissions:
    """Everyone's folder `submitted`/<student>/<unit>/, as it is at the moment of each call."""

    def __init__(
        self, submitted: Path, unit: str, class_folder: Path | None = None, newest: Newest | None = None
    ) -> None:
        """Opens the folder, if it is there; raises OSError if it cannot be read.

        newest: finds notebooks under other names than the unit's; they are looked through at once if it is not given.
        """
        self._newest = newest or (lambda _, folder, notebooks: newest_of_unit(folder, notebooks, unit, class_folder))
        self._unit = unit
        self._folder: OpenedFolder | None = None
        if submitted.exists():
            self._folder = OpenedFolder.at(submitted)

    def students(self) -> list[str]:
        """The students whose folder has one for the unit, in alphabetical order."""
        return [name for name in self._names() if not name.startswith(".") and self._has_unit(name)]

    def hand_in(self, student: str) -> HandIn:
        """Which file is a student's submission."""
        try:
            with self._opened(student) as folder:
                return self._looked_at(student, folder)
        except (FileNotFoundError, ValueError):
            return HandIn(student, None, _NOTHING)
        except NotADirectoryError:
            return self._no_folder(student)
        except OSError as error:
            no_name = error.errno == errno.ENAMETOOLONG  # otherwise reading it says what is wrong
            return HandIn(student, None, _NOTHING) if no_name else HandIn(student, f"{self._unit}.ipynb")

    def read(self, hand_in: HandIn) -> Read:
        """What a student handed in; notebook and time come from the same opened folder."""
        assert hand_in.notebook is not None
        try:
            with self._opened(hand_in.student) as folder:
                return Read(read_in(folder, hand_in.notebook), stamp_in(folder))
        except (OSError, ValueError) as error:
            return Read(unreadable(error), None)

    def digest(self, hand_in: HandIn) -> tuple[str, bytes | None]:
        """The digest and the stamp that `read` would find, for a small part of the time that it takes."""
        assert hand_in.notebook is not None
        try:
            with self._opened(hand_in.student) as folder:
                return digest_in(folder, hand_in.notebook), stamp_in(folder)
        except (OSError, ValueError):
            return "", None

    def passed_over(self, units: Collection[str]) -> list[str]:
        """What is among the submissions where no submission of any unit is looked for, as paths within the folder.

        A name that begins with a dot is neither a student nor a unit.
        """
        there = [name for name in self._names() if not _is_of_a_program(name)]
        students = [name for name in there if not name.startswith(".") and self._leads_to_folder(name)]
        within = [
            f"{student}/{name}"
            for student in students
            for name in self._names_in(student)
            if not _is_of_a_program(name) and not (name in units and self._leads_to_folder(f"{student}/{name}"))
        ]
        loose = sorted(set(there) - set(students))
        return [notebook.printable(path) for path in loose + within]

    def _looked_at(self, student: str, folder: OpenedFolder) -> HandIn:
        expected = f"{self._unit}.ipynb"
        handed_in = [name for name in folder.names() if name != TIMESTAMP and not _is_of_a_program(name)]
        notebooks = [name for name in handed_in if name.lower().endswith(".ipynb") and not name.startswith(".")]
        if expected in handed_in:
            return HandIn(student, expected, _beside(expected, notebooks))
        try:
            newest = self._newest(student, folder, notebooks) if notebooks else None
        except NotKnownYet:
            return HandIn(student, None, _LOOKED_THROUGH)
        if newest:
            called = f"Marked from {_named([newest])}; the notebook is called `{expected}`."
            return HandIn(student, newest, f"{called} {_beside(newest, notebooks)}".strip())
        if notebooks:
            return HandIn(student, notebooks[0], f"There is no `{expected}`; {_named(notebooks[:1])} was looked at.")
        if handed_in:
            only = _named(handed_in)
            return HandIn(student, None, f"There is no notebook, only {only}. Hand in `{expected}` itself.")
        return HandIn(student, None, _NOTHING)

    def _no_folder(self, student: str) -> HandIn:
        """A hand-in for a link, which is not followed: it could lead to the solutions or a classmate's folder."""
        assert self._folder is not None
        is_link = self._folder.is_link(student) and self._has_unit(student)
        if not is_link:
            try:
                with self._folder.folder(student) as folder:
                    is_link = folder.is_link(self._unit)
            except OSError:
                is_link = False
        return HandIn(student, f"{self._unit}.ipynb") if is_link else HandIn(student, None, _NOTHING)

    def _opened(self, student: str) -> OpenedFolder:
        if self._folder is None:
            raise FileNotFoundError
        with self._folder.folder(student) as folder:
            return folder.folder(self._unit)

    def _names(self) -> list[str]:
        return self._folder.names() if self._folder else []

    def _names_in(self, student: str) -> list[str]:
        assert self._folder is not None
        try:
            with self._folder.folder(student) as folder:
                return folder.names()
        except OSError:
            return []

    def _has_unit(self, student: str) -> bool:
        return self._leads_to_folder(f"{student}/{self._unit}")

    def _leads_to_folder(self, path: str) -> bool:
        return self._folder is not None and self._folder.leads_to_folder(path)


def newest_first(folder: OpenedFolder, notebooks: list[str]) -> list[tuple[str, os.stat_result]]:
    """Those of the notebooks that are searched for a unit."""
    files = [(name, status) for name in notebooks if (status := _status(folder, name))]
    return sorted(files, key=lambda file: (file[1].st_mtime, file[0]), reverse=True)[:_MOST_LOOKED_AT]


def newest_of_unit(folder: OpenedFolder, notebooks: list[str], unit: str, class_folder: Path | None) -> str | None:
    """The newest notebook that belongs to the unit, among no more than can be searched in a few seconds."""
    files = [(name, status.st_size) for name, status in newest_first(folder, notebooks)]
    left = _MOST_BYTES_LOOKED_AT + sum(size for _, size in files[:1])
    for name, size in files:
        if size <= left:
            left -= size
            if _belongs(folder, name, unit, class_folder):
                return name
    return None


def _belongs(folder: OpenedFolder, name: str, unit: str, class_folder: Path | None) -> bool:
    parsed = notebook.parse(read_in(folder, name).content)
    if not isinstance(parsed, notebook.RawNotebook):
        return False
    found = unit_of(parsed, class_folder)
    return isinstance(found, course.Unit) and found.name == unit


def _is_of_a_program(name: str) -> bool:
    return name in _OF_PROGRAMS or name.startswith("._")


def _status(folder: OpenedFolder, name: str) -> os.stat_result | None:
    try:
        return folder.status(name)
    except OSError:
        return None


def _beside(marked: str, notebooks: list[str]) -> str:
    """What to say about notebooks other than the marked one."""
    others = [name for name in notebooks if name != marked]
    return f"Also there, and not marked: {_named(others)}." if others else ""


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"`{notebook.printable(name)}`" for name in names[:_MOST_NAMED]) + more

"""What each student handed in: which of their files is the notebook, what is in it, and when it came.

The folder of submissions is opened once, and everything in it is opened from there: see `handed_in.opened_folder`.
"""

import errno
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from .. import course
from ..course import notebook
from ..course.cells import is_worked_on, unit_of
from ..gradebook.time_stamp import TIMESTAMP, stamp_in
from ..submitted.candidates import Allowance, contents, is_of_a_program, notebooks_at, possible, status
from ..submitted.folder import OpenedFolder
from ..submitted.notebook_file import NotebookFile, digest_in, read_in, unreadable

_NOTHING = "Nothing was handed in."
_LOOKED_THROUGH = "Its files are being looked through."
_MOST_NAMED = 5
_MOST_LOOKED_AT = 20
"""How many notebooks under other names are searched for the unit, newest first."""
_MOST_BYTES_LOOKED_AT = 32 << 20
"""Of these together, not counting the newest, which may be as large as any notebook."""


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
        self._class_folder = class_folder
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
            return self._nothing(student)
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
        there = [name for name in self._names() if not is_of_a_program(name)]
        students = [name for name in there if not name.startswith(".") and self._leads_to_folder(name)]
        within = [
            f"{student}/{name}"
            for student in students
            for name in self._names_in(student)
            if not is_of_a_program(name) and not (name in units and self._leads_to_folder(f"{student}/{name}"))
        ]
        loose = sorted(set(there) - set(students))
        return [notebook.printable(path) for path in loose + within]

    def _looked_at(self, student: str, folder: OpenedFolder) -> HandIn:
        expected = f"{self._unit}.ipynb"
        submitted = [name for name in folder.names() if name != TIMESTAMP and not is_of_a_program(name)]
        found = possible(folder, self._unit)
        if expected in submitted and found in ([], [expected]):
            return HandIn(student, expected)
        try:
            best = self._newest(student, folder, found) if found else None
        except NotKnownYet:
            return HandIn(student, None, _LOOKED_THROUGH)
        if best and best != expected:
            called = f"Marked from {_named([best])}; the notebook is called `{expected}`."
            return HandIn(student, best, f"{called} {_beside(best, found)}".strip())
        if best or expected in submitted:
            return HandIn(student, expected, _beside(expected, found))
        notebooks = [path for path in found if ".ipynb" in path.rpartition("/")[2].lower()]
        if notebooks:
            return HandIn(student, notebooks[0], f"There is no `{expected}`; {_named(notebooks[:1])} was looked at.")
        if submitted:
            only = ", ".join(_with_contents(folder, name) for name in submitted[:_MOST_NAMED]) + _more(submitted)
            return HandIn(student, None, f"There is no notebook, only {only}. Hand in `{expected}` itself.")
        return HandIn(student, None, _NOTHING)

    def _nothing(self, student: str) -> HandIn:
        """Return the entry of a student without a folder for the unit; its note lists the other files in the folder."""
        units = course.unit_names(self._class_folder)
        others = [name for name in self._names_in(student) if not (is_of_a_program(name) or name in units)]
        if not others:
            return HandIn(student, None, _NOTHING)
        wanted = f"`{self._unit}/{self._unit}.ipynb`"
        return HandIn(student, None, f"{_NOTHING} Looked for {wanted}; there is only {_named(others)}.")

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
        if self._folder is None:
            return []
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
    files = [(name, found) for name in notebooks if (found := status(folder, name))]
    return sorted(files, key=lambda file: (file[1].st_mtime, file[0]), reverse=True)[:_MOST_LOOKED_AT]


def newest_of_unit(folder: OpenedFolder, notebooks: list[str], unit: str, class_folder: Path | None) -> str | None:
    """Return the path of the submission among files that may be notebooks or zip files; None if none is of the unit.

    That is the notebook with the unit's own name, if something is done in it, else the newest one in which something
    is done, else the newest. No more is read than a few seconds take.
    """
    files = newest_first(folder, notebooks)
    left = _MOST_BYTES_LOOKED_AT + sum(found.st_size for _, found in files[:1])
    allowance = Allowance()
    untouched = None
    for name, _ in sorted(files, key=lambda file: file[0] != f"{unit}.ipynb"):
        for path, size in notebooks_at(folder, name, unit, allowance):
            if size > left:
                continue
            left -= size
            parsed = notebook.parse(read_in(folder, path).content)
            if isinstance(parsed, notebook.RawNotebook) and _belongs(parsed, unit, class_folder):
                if is_worked_on(parsed, course.unit(unit, class_folder), class_folder):
                    return path
                untouched = untouched or path
    return untouched


def _belongs(parsed: notebook.RawNotebook, unit: str, class_folder: Path | None) -> bool:
    found = unit_of(parsed, class_folder)
    return isinstance(found, course.Unit) and found.name == unit


def _beside(marked: str, notebooks: list[str]) -> str:
    """What to say about notebooks other than the marked one."""
    others = [name for name in notebooks if name != marked and not marked.startswith(f"{name}/")]
    return f"Also there, and not marked: {_named(others)}." if others else ""


def _with_contents(folder: OpenedFolder, name: str) -> str:
    """A name for a message; for a folder or a zip file, with what is in it."""
    within = contents(folder, name, _MOST_NAMED)
    return f"{_named([name])} (with {_named(within)})" if within else _named([name])


def _named(names: list[str]) -> str:
    return ", ".join(f"`{notebook.printable(name)}`" for name in names[:_MOST_NAMED]) + _more(names)


def _more(names: list[str]) -> str:
    return f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""

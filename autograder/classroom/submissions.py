"""Submissions of a class: which of a student's files is the notebook, its content, and its time stamp.

The folder of submissions is opened once, and everything in it is opened from there: see `course.submitted_files`.
"""

import errno
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from .. import course
from ..course import notebook
from ..course.cells import is_worked_on, unit_of
from ..course.notebook_file import (
    Allowance,
    NotebookFile,
    contents,
    digest_in,
    is_of_a_program,
    notebooks_at,
    possible,
    read_in,
    status,
    unreadable,
)
from ..course.settings import load
from ..course.submitted_files import OpenedFolder
from ..gradebook.time_stamp import TIMESTAMP, stamp_in
from ..student_check.unit_data import zip_file

UNREAD = "Your group submitted a file that could not be read and does not count: that of "
"""Beginning of a group's warning, before the ids of the members who submitted the files."""
_NOTHING = "Nothing was submitted."
_MOST_NAMED = 5
_MOST_SEARCHED = 20
"""Number of notebooks under other names that are searched for the unit, newest first."""
_MOST_BYTES_SEARCHED = 32 << 20
"""Limit in bytes for all searched notebooks together, except the newest, which may be as large as any notebook."""
_searched: dict[tuple[object, ...], str | None] = {}
"""Results of searches for the unit, by what identifies the files."""


@dataclass(frozen=True)
class Submission:
    """One student's submission."""

    student: str
    notebook: str | None
    """The file's name in the student's folder; None if there is no notebook."""
    note: str = ""
    """A remark to the student: which file is graded, or why none is."""
    author: str = ""
    """The member of the student's group whose file it is; empty if it is the student's own."""
    warning: str = ""
    """Beginning of the note: later files of the student's group that could not be read."""

    @property
    def folder(self) -> str:
        """The name of the student's folder that the file is in."""
        return self.author or self.student


@dataclass(frozen=True)
class Read:
    """The content of a submission at one moment."""

    file: NotebookFile
    stamp: bytes | None
    """The time stamp that `nbgrader collect` wrote next to the notebook; None if it is missing."""


class SubmissionFiles:
    """Everyone's folder `submitted`/<student>/<unit>/, as it is at the moment of each call."""

    def __init__(self, submitted: Path, unit: str, class_folder: Path | None = None) -> None:
        """Open the folder, if it exists. Raises OSError if it cannot be read."""
        self._unit = unit
        self._expected = f"{unit}.ipynb"
        self._released_zip = zip_file(load().check)
        self._class_folder = class_folder
        self._folder = OpenedFolder.at(submitted) if submitted.exists() else None

    def students(self) -> list[str]:
        """Return the students who have a folder for the unit, in alphabetical order."""
        return [name for name in self._names() if not name.startswith(".") and self._has_unit(name)]

    def submission(self, student: str) -> Submission:
        """Return which file is a student's submission."""
        try:
            with self._opened(student) as folder:
                return self._choose(student, folder)
        except (FileNotFoundError, ValueError):
            return self._nothing(student)
        except NotADirectoryError:
            return (
                Submission(student, self._expected) if self._is_link(student) else Submission(student, None, _NOTHING)
            )
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return Submission(student, None, _NOTHING)
            return Submission(student, self._expected)  # reading it reports what is wrong

    def read(self, submission: Submission) -> Read:
        """Read a submission; notebook and time stamp come from the same opened folder."""
        assert submission.notebook is not None
        try:
            with self._opened(submission.folder) as folder:
                return Read(read_in(folder, submission.notebook), stamp_in(folder))
        except (OSError, ValueError) as error:
            return Read(unreadable(error), None)

    def digest(self, submission: Submission) -> tuple[str, bytes | None]:
        """Return the digest and the time stamp that `read` would return, but much faster."""
        assert submission.notebook is not None
        try:
            with self._opened(submission.folder) as folder:
                return digest_in(folder, submission.notebook), stamp_in(folder)
        except (OSError, ValueError):
            return "", None

    def passed_over(self, units: Collection[str]) -> list[str]:
        """Return the paths within the folder where no submission of any unit is expected.

        A name that begins with a dot is neither a student nor a unit.
        """
        names = [name for name in self._names() if not is_of_a_program(name)]
        students = [name for name in names if not name.startswith(".") and self._leads_to_folder(name)]
        within = [
            f"{student}/{name}"
            for student in students
            for name in self._names(student)
            if not is_of_a_program(name) and not (name in units and self._leads_to_folder(f"{student}/{name}"))
        ]
        loose = sorted(set(names) - set(students))
        return [notebook.printable(path) for path in loose + within]

    def _choose(self, student: str, folder: OpenedFolder) -> Submission:
        """Return the submission among the files of a student's folder for the unit."""
        submitted = [name for name in folder.names() if name != TIMESTAMP and not is_of_a_program(name)]
        candidates = [path for path in possible(folder, self._unit) if path != self._released_zip]
        if self._expected in submitted and candidates in ([], [self._expected]):
            return Submission(student, self._expected)
        best = newest_of_unit(folder, candidates, self._unit, self._class_folder) if candidates else None
        if best and best != self._expected:
            note = f"{_named([best])} was graded; the notebook should be called `{self._expected}`."
            return Submission(student, best, f"{note} {_others(best, candidates)}".strip())
        if best or self._expected in submitted:
            return Submission(student, self._expected, _others(self._expected, candidates))
        if notebooks := [path for path in candidates if ".ipynb" in path.rpartition("/")[2].lower()]:
            note = f"There is no `{self._expected}`; {_named(notebooks[:1])} was graded."
            return Submission(student, notebooks[0], note)
        if submitted:
            only = ", ".join(_with_contents(folder, name) for name in submitted[:_MOST_NAMED])
            only += f" and {len(submitted) - _MOST_NAMED} more" if submitted[_MOST_NAMED:] else ""
            return Submission(student, None, f"There is no notebook, only {only}. Submit `{self._expected}` itself.")
        return Submission(student, None, _NOTHING)

    def _nothing(self, student: str) -> Submission:
        """Return the result for a student without a folder for the unit. Its note lists the student's other files."""
        units = course.unit_names(self._class_folder)
        others = [name for name in self._names(student) if not (is_of_a_program(name) or name in units)]
        wanted = f"`{self._unit}/{self._expected}`"
        more = f" Expected: {wanted}. Found only: {_named(others)}." if others else ""
        return Submission(student, None, _NOTHING + more)

    def _is_link(self, student: str) -> bool:
        """Return whether the unit's folder is a link. Links are not followed: they could lead to solutions."""
        assert self._folder is not None
        if self._folder.is_link(student) and self._has_unit(student):
            return True
        try:
            with self._folder.folder(student) as folder:
                return folder.is_link(self._unit)
        except OSError:
            return False

    def _opened(self, student: str) -> OpenedFolder:
        if self._folder is None:
            raise FileNotFoundError
        with self._folder.folder(student) as folder:
            return folder.folder(self._unit)

    def _names(self, student: str | None = None) -> list[str]:
        """Return the names in the folder of submissions, or in a student's; none if the latter cannot be read."""
        if self._folder is None or student is None:
            return self._folder.names() if self._folder else []
        try:
            with self._folder.folder(student) as folder:
                return folder.names()
        except OSError:
            return []

    def _has_unit(self, student: str) -> bool:
        return self._leads_to_folder(f"{student}/{self._unit}")

    def _leads_to_folder(self, path: str) -> bool:
        return self._folder is not None and self._folder.leads_to_folder(path)


def _newest_first(folder: OpenedFolder, notebooks: list[str]) -> list[tuple[str, os.stat_result]]:
    """Return the notebooks that are searched for a unit, with their status, newest first."""
    files = [(name, its) for name in notebooks if (its := status(folder, name))]
    return sorted(files, key=lambda file: (file[1].st_mtime, file[0]), reverse=True)[:_MOST_SEARCHED]


def newest_of_unit(folder: OpenedFolder, notebooks: list[str], unit: str, class_folder: Path | None) -> str | None:
    """Return the path of the submission among files that may be notebooks or zip files; None if none is of the unit.

    It is the notebook with the unit's own name, if the student has worked on it, else the newest one on which the
    student has worked, else the newest. The search takes a few seconds at most. The same files are searched only once,
    because `serve` polls a class again and again.
    """
    files = _newest_first(folder, notebooks)
    identities = ((name, its.st_ino, its.st_size, its.st_mtime_ns, its.st_ctime_ns) for name, its in files)
    seen = unit, class_folder, *identities
    if seen not in _searched:
        _searched[seen] = _search(folder, files, unit, class_folder)
    return _searched[seen]


def _search(
    folder: OpenedFolder, files: list[tuple[str, os.stat_result]], unit: str, class_folder: Path | None
) -> str | None:
    left = _MOST_BYTES_SEARCHED + sum(its.st_size for _, its in files[:1])
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
    its = unit_of(parsed, class_folder)
    return isinstance(its, course.Unit) and its.name == unit


def _others(graded: str, notebooks: list[str]) -> str:
    """Return a note on notebooks other than the graded one; empty if there is none."""
    others = [name for name in notebooks if name != graded and not graded.startswith(f"{name}/")]
    return f"Also submitted, but not graded: {_named(others)}." if others else ""


def _with_contents(folder: OpenedFolder, name: str) -> str:
    """Return a name for a message, with the content of a folder or a zip file."""
    within = contents(folder, name, _MOST_NAMED)
    return f"{_named([name])} (with {_named(within)})" if within else _named([name])


def _named(names: list[str]) -> str:
    return notebook.list_names([f"`{name}`" for name in names], _MOST_NAMED)

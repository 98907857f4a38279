"""Each student's folders: `submitted/`, which grading reads, and `autograded/` and `feedback/`, which it writes.

Of a student's files in `submitted/`, one is the notebook. That folder is opened once, and everything in it is opened
from there: see `course.submitted_files`. People who grade read `autograded/`, and the student gets `feedback/`.
"""

import errno
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import nbformat
from nbconvert.exporters import HTMLExporter
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.preprocessors import LimitOutput
from traitlets.config import Config

from .. import course, output_files
from ..course import notebook
from ..course.cells import is_worked_on, unit_of
from ..course.nodes import as_file, truncate_for_page
from ..course.notebook import UnreadableNotebook
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
from ..formatting.client import Formatter, PageFormatter
from ..gradebook import clean_notebook
from ..gradebook.clean_notebook import clean_or_stand_in, released
from ..gradebook.entry import Shown
from ..gradebook.lateness import Deadline
from ..gradebook.time_stamp import TIMESTAMP, stamp_in
from ..report import REPORT_FILE, Report
from ..reports.pages import filters, read_report, show_edits, write_report, write_scores
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

    def stamp(self, submission: Submission) -> bytes | None:
        """Return the time stamp that `read` would return, without reading the notebook."""
        try:
            with self._opened(submission.folder) as folder:
                return stamp_in(folder)
        except (OSError, ValueError):
            return None

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
    """Return a note on notebooks other than the graded one; otherwise empty."""
    others = [name for name in notebooks if name != graded and not graded.startswith(f"{name}/")]
    return f"Also submitted, but not graded: {_named(others)}." if others else ""


def _with_contents(folder: OpenedFolder, name: str) -> str:
    """Return a name for a message, with the content of a folder or a zip file."""
    within = contents(folder, name, _MOST_NAMED)
    return f"{_named([name])} (with {_named(within)})" if within else _named([name])


def _named(names: list[str]) -> str:
    return notebook.list_names([f"`{name}`" for name in names], _MOST_NAMED)


class Autograded:
    """The folders `autograded/<student>/<unit>/`, which formgrader and nbgrader's own commands read.

    They hold the student's graded notebook as nbgrader's autograde would write it, and the report next to it.
    """

    def __init__(self, directory: Any, unit: str) -> None:
        """directory: nbgrader's CourseDirectory."""
        self._unit = unit
        self._directory = directory
        self._root = Path(directory.root)
        config = directory.config
        self._mode = int(str(Autograde(coursedir=directory, config=config).permissions), 8)
        self._limit_output = LimitOutput(config=config)
        # The student check that the notebook's cells import, and its data.
        self._beside = {
            path.name: output_files.CommonFile(path.read_bytes())
            for path in course.accompanying_files(unit, self._root)
        }

    def folder(self, student: str) -> Path:
        """Return the folder with the student's graded notebook."""
        return Path(self._directory.format_path(self._directory.autograded_directory, student, self._unit))

    def graded(self, content: bytes | UnreadableNotebook, report: Report) -> Any:
        """Return the student's notebook, with the report written into its cells."""
        node = clean_or_stand_in(content, self._unit, self._root)
        write_report(node, report)
        return self._limit_output.preprocess(node, {})[0]

    def put(self, student: str, node: Any, report: Report, timestamp: bytes | None) -> None:
        """Write the student's folder, with the files of the notebook's pictures. Raises OSError."""
        files: Mapping[str, bytes | output_files.CommonFile] = {
            **self._beside,
            **({} if timestamp is None else {TIMESTAMP: timestamp}),
            **clean_notebook.pop_files(node),
            f"{self._unit}.ipynb": as_file(node),
            REPORT_FILE: _as_file(report),
        }
        output_files.fill_folder(self.folder(student), files, self._mode)

    def reweighted(self, student: str, report: Report) -> Any:
        """Return the graded notebook as it is on disk, with the points of a report."""
        node = self.notebook(student)
        write_scores(node, report)
        return node

    def replace(self, student: str, node: Any, report: Report) -> None:
        """Write the notebook and the report of a student's folder again. Raises OSError."""
        folder = self.folder(student)
        output_files.replace_file(folder / f"{self._unit}.ipynb", as_file(node), self._mode)
        output_files.replace_file(folder / REPORT_FILE, _as_file(report), self._mode)

    def report(self, student: str) -> Report | None:
        """Return the report of the last grading; None unless the graded notebook is next to it."""
        return read_report(self.folder(student), self._unit)

    def notebook(self, student: str) -> Any:
        """Return the graded notebook as it is on disk."""
        return nbformat.v4.reads((self.folder(student) / f"{self._unit}.ipynb").read_text())


def _as_file(report: Report) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report))


def page_path(directory: Any, unit: str, student: str) -> Path:
    """Return the path of a student's feedback page. directory: nbgrader's CourseDirectory."""
    return Path(directory.format_path(directory.feedback_directory, student, unit)) / f"{unit}.html"


class FeedbackPages:
    """The pages `feedback/<student>/<unit>/<unit>.html`, from the template of nbgrader's generate_feedback.

    Their content equals that of nbgrader's pages, but all pages share the work that is the same for each. nbgrader
    builds the exporter and its templates again for every page, opens the gradebook, validates the notebook that it has
    written itself, and parses the page again to give images alternative texts.
    """

    def __init__(self, directory: Any, unit: str, formatter: Formatter) -> None:
        """directory: nbgrader's CourseDirectory."""
        self._unit = unit
        self._directory = directory
        converter = GenerateFeedback(coursedir=directory, config=directory.config)
        converter.update_config(Config(HTMLExporter={"template_name": "feedback"}))  # as nbgrader's API does
        self._mode = int(str(converter.permissions), 8)
        empty, texts = released(unit, Path(directory.root)), PageFormatter(formatter)
        self._exporter = _Exporter(empty, texts, parent=converter, config=converter.config)

    def put(self, student: str, node: Any, shown: Shown) -> None:
        """Write the page of a graded notebook, after putting scores and comments into it. Raises OSError."""
        about = shown.put_into(node)
        if shown.is_past_due:
            show_edits(node)
        folder = self._directory.format_path(self._directory.autograded_directory, student, self._unit)
        page = self._exporter.page(node, folder, notebook=self._unit, assignment=self._unit, student=student, **about)
        path = page_path(self._directory, self._unit, student)
        output_files.fill_folder(path.parent, {path.name: page.encode()}, self._mode)


class _Exporter(HTMLExporter):
    """nbconvert's exporter for all pages of one unit: their notebooks all have the release's metadata."""

    def __init__(self, empty: Any, texts: PageFormatter, **settings: Any) -> None:
        """empty: the released notebook, from which this constructor removes the cells."""
        super().__init__(**settings)
        empty.cells = []
        nobody = {"notebook": "", "score": 0.0, "max_score": 0.0, "late_penalty": 0.0, "deadline": Deadline()}
        _, self._resources = self.from_notebook_node(empty, {"nbgrader": nobody})  # sets all filters
        self.environment.filters.update(filters(lambda: texts))
        self._texts = texts

    def page(self, node: Any, folder: str, **about: Any) -> str:
        """Return the page of a notebook that has its scores and comments.

        folder: the folder with the files of its pictures. about: variables of nbgrader's template.
        """
        truncate_for_page(node)
        self._texts.begin()
        metadata = {**self._resources["metadata"], "path": folder}
        resources = {**self._resources, "nbgrader": about, "metadata": metadata}
        page: str = self.template.render(nb=node, resources=resources).lstrip("\r\n")
        return page

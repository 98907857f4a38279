"""The folders that grading writes for each student: `autograded/` for people who grade, `feedback/` for the student."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import nbformat
from nbconvert.exporters import HTMLExporter
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.preprocessors import LimitOutput
from traitlets.config import Config

from .. import course, output_files
from ..course.nodes import as_file, truncate_for_page
from ..course.notebook import UnreadableNotebook
from ..formatting.client import Formatter, PageFormatter
from ..gradebook import clean_notebook
from ..gradebook.clean_notebook import clean_or_stand_in, released
from ..gradebook.entry import Shown
from ..gradebook.lateness import Deadline
from ..gradebook.time_stamp import TIMESTAMP
from ..report import REPORT_FILE, Report
from ..reports.pages import filters, read_report, show_edits, write_report, write_scores


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

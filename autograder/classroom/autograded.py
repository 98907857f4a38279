"""A student's marked notebook, as nbgrader's autograde would write it: feedback in its cells, the report next to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import nbformat
from nbgrader.converters import Autograde
from nbgrader.preprocessors import LimitOutput

from .. import course
from ..course.nodes import as_file
from ..course.notebook import UnreadableNotebook
from ..gradebook import pictures
from ..gradebook.clean_notebook import clean_or_stand_in
from ..gradebook.time_stamp import TIMESTAMP
from ..report import REPORT_FILE, Report
from ..reports.graded_notebook import read_report, write_report
from . import whole_files


class Autograded:
    """The folders `autograded/<student>/<unit>/`, which formgrader and nbgrader's own commands read."""

    def __init__(self, directory: Any, unit: str) -> None:
        self._unit = unit
        self._directory = directory
        self._root = Path(directory.root)
        config = directory.config
        self._mode = int(str(Autograde(coursedir=directory, config=config).permissions), 8)
        self._limit_output = LimitOutput(config=config)
        # The check that the notebook's cells import, and its data.
        self._beside = {
            path.name: whole_files.Common(path.read_bytes()) for path in course.accompanying_files(unit, self._root)
        }

    def folder(self, student: str) -> Path:
        """The folder with the student's marked notebook."""
        return Path(self._directory.format_path(self._directory.autograded_directory, student, self._unit))

    def marked(self, content: bytes | UnreadableNotebook, report: Report) -> Any:
        """The student's notebook, with the report written into its cells."""
        node = clean_or_stand_in(content, self._unit, self._root)
        write_report(node, report)
        return self._limit_output.preprocess(node, {})[0]

    def put(self, student: str, node: Any, report: Report, timestamp: bytes | None) -> None:
        """Writes the student's folder, with the files of the notebook's pictures; raises OSError."""
        files: Mapping[str, bytes | whole_files.Common] = {
            **self._beside,
            **({} if timestamp is None else {TIMESTAMP: timestamp}),
            **pictures.pop(node),
            f"{self._unit}.ipynb": as_file(node),
            REPORT_FILE: msgspec.json.format(msgspec.json.encode(report)),
        }
        whole_files.fill(self.folder(student), files, self._mode)

    def report(self, student: str) -> Report | None:
        """The report of the last marking; None unless the notebook that it is about is next to it."""
        return read_report(self.folder(student), self._unit)

    def notebook(self, student: str) -> Any:
        """The marked notebook as it is on disk."""
        return nbformat.v4.reads((self.folder(student) / f"{self._unit}.ipynb").read_text())

"""Reads submissions as data: a file that is not a notebook becomes a row with a reason, not the end of the batch."""

import io
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter

from ..gradebook.clean_notebook import clean_or_stand_in
from ..submitted.folder import OpenedFolder
from ..submitted.notebook_file import NotebookFile, read_in, unreadable
from .preprocessor import SUBMISSION


class SubmissionExporter(NotebookExporter):
    """How nbgrader reads and writes notebooks, for files that a stranger wrote."""

    def from_filename(self, filename: str, resources: dict[str, Any] | None = None, **kw: Any) -> Any:
        """Reads a notebook, which nbgrader does twice: as it was handed in, and as it was cleaned and written again.

        The released notebook stands in for a damaged one, with the reason in its metadata.
        """
        resources = resources or {}
        path = Path(filename)
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        if self.parent._sanitizing:  # nbgrader's Autograde: this is the student's own file
            node = _handed_in(path, resources["nbgrader"]["assignment"], Path(self.parent.coursedir.root))
        else:
            node = nbformat.read(path, as_version=4)
        return self.from_file(io.StringIO(nbformat.writes(node)), resources=resources, **kw)


def _handed_in(path: Path, unit: str, class_folder: Path) -> Any:
    """The notebook at submitted/STUDENT/UNIT/, cleaned, with the digest of the file that was read."""
    file = _read(path)
    node = clean_or_stand_in(file.content, unit, class_folder)
    node.metadata[SUBMISSION] = file.digest
    return node


def _read(path: Path) -> NotebookFile:
    """The file at the path, where neither the student's folder nor the unit's may be a link."""
    try:
        with OpenedFolder.of_student(path.parent) as folder:
            return read_in(folder, path.name)
    except (OSError, ValueError) as error:
        return unreadable(error)

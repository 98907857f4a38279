"""Reads submissions as data: a file that is no notebook becomes a row with a reason, not the end of the batch."""

import io
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter

from .. import notebook
from .clean_notebook import clean, stand_in


class SubmissionExporter(NotebookExporter):
    """nbgrader's way to read and write notebooks, for files that a stranger wrote."""

    def from_filename(self, filename: str, resources: dict[str, Any] | None = None, **kw: Any) -> Any:
        """Reads a notebook, which nbgrader does twice: as it was handed in, and as it was cleaned and written again.

        In the place of a damaged one stands the released notebook, with the reason in its metadata.
        """
        resources = resources or {}
        path = Path(filename)
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        if self.parent._sanitizing:  # nbgrader's Autograde: this is the student's own file
            node = _handed_in(path, resources["nbgrader"]["assignment"])
        else:
            node = nbformat.read(path, as_version=4)
        return self.from_file(io.StringIO(nbformat.writes(node)), resources=resources, **kw)


def _handed_in(path: Path, unit: str) -> Any:
    try:
        return clean(notebook.parse(notebook.read(path)), unit)
    except notebook.Damaged as reason:
        return stand_in(unit, reason)

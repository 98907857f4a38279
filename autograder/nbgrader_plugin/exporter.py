"""Reads submissions as data: a file that is no notebook becomes a row with a reason, not the end of the batch."""

import io
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter

from .. import course, notebook

DAMAGED = "damaged"


class SubmissionExporter(NotebookExporter):
    """nbgrader's way to read and write notebooks, for files that a stranger wrote."""

    def from_filename(self, filename: str, resources: dict[str, Any] | None = None, **kw: Any) -> Any:
        """Reads the notebook; in the place of a damaged one the released notebook, with the reason in its metadata."""
        resources = resources or {}
        path = Path(filename)
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        try:
            content = notebook.read(path)
            notebook.parse(content)
            node = _as_nbformat(content)
        except notebook.Damaged as damage:
            node = _stand_in(resources["nbgrader"]["assignment"], str(damage))
        return self.from_file(io.StringIO(nbformat.writes(node)), resources=resources, **kw)


def damage(node: Any) -> str | None:
    """Why the file that this notebook stands in for could not be read; None for a notebook of the student's own."""
    found = node.metadata.get("autograder", {}).get(DAMAGED)
    return found if isinstance(found, str) else None


def _as_nbformat(content: bytes) -> Any:
    try:
        return nbformat.reads(content.decode(), as_version=4)
    except Exception as error:
        raise notebook.Damaged(f"Jupyter cannot read this notebook: {error}") from None


def _stand_in(unit: str, reason: str) -> Any:
    released = nbformat.read(course.RELEASE / unit / f"{unit}.ipynb", as_version=4)
    released.metadata["autograder"] = {DAMAGED: reason}
    return released

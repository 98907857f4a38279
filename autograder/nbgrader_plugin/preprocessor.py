"""The preprocessor that takes the place of nbgrader's `Execute`: the sandbox runs the cells, the graders mark them."""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum

from ..feedback.notebook import write
from ..grading.client import Grader, GraderRefused, GraderStopped
from ..report import Report
from .exporter import damage

REPORT_FILE = "report.json"


class Marker(Protocol):
    """What gives the report on one student's notebook."""

    def report(self, student: str, unit: str, node: Any) -> Report: ...


class MarkExercises(NbGraderPreprocessor):
    """Marks a submission, writes scores and feedback into its grade cells, and the whole report beside it."""

    device = Enum(["cpu", "cuda", "auto"], "auto", help="Where the exercises' tensors are.").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        about = resources["nbgrader"]
        marker = _marker or _own_marker(self.device, self.parent.parent.coursedir.root)
        report = marker.report(about["student"], about["assignment"], nb)
        write(nb, report)
        resources.setdefault("outputs", {})[REPORT_FILE] = msgspec.json.format(msgspec.json.encode(report))
        return nb, resources


class _OwnMarker:
    """A grader process for plain `nbgrader autograde` and formgrader, kept for as long as this process lives."""

    def __init__(self, device: Any, course_folder: str) -> None:
        self._device = device
        self._private = (Path(course_folder),)
        self._grader = Grader(device, private=self._private)
        atexit.register(lambda: self._grader.close())

    def report(self, student: str, unit: str, node: Any) -> Report:
        name = f"{unit}.ipynb"
        reason = damage(node)
        if reason is not None:
            return self._grader.without_marks(name, "damaged", reason)
        try:
            return self._grader.mark(name, nbformat.writes(node).encode(), unit)
        except GraderStopped as stopped:
            self._start_again()
            return self._grader.without_marks(name, "grader_error", str(stopped))
        except GraderRefused:
            self._start_again()  # for the next submission: what was missing may be there by then
            raise

    def _start_again(self) -> None:
        self._grader.close()
        self._grader = Grader(self._device, private=self._private)


_marker: Marker | None = None
_own: dict[tuple[str, str], _OwnMarker] = {}


def _own_marker(device: str, course_folder: str) -> _OwnMarker:
    if (device, course_folder) not in _own:
        _own[device, course_folder] = _OwnMarker(device, course_folder)
    return _own[device, course_folder]


@contextmanager
def marks_from(marker: Marker) -> Iterator[None]:
    """Within the block reports come from this marker: `autograder grade` marks ahead, several at a time."""
    global _marker
    _marker = marker
    try:
        yield
    finally:
        _marker = None

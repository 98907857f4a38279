"""The preprocessor that replaces nbgrader's `Execute`: the sandbox runs the cells, the graders mark them."""

import atexit
from pathlib import Path
from typing import Any

import msgspec
import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum

from ..client.marker import Marker, MarkerRefused, MarkerStopped, running, stopped_at
from ..gradebook import pictures
from ..gradebook.clean_notebook import damage, without_put_back
from ..gradebook.time_stamp import StampFormat, stamp_at
from ..report import REPORT_FILE, Report
from ..reports.graded_notebook import write_report

SUBMISSION = "autograder_submission"
"""Key in a notebook's metadata, from when the exporter reads the file until it is marked: SHA-256 of what was read."""
SUBMISSION_TIME = "autograder_submission_time"
"""Key in `resources["nbgrader"]` for later preprocessors: the `SubmissionTime` that the time stamp gives."""


class MarkExercises(NbGraderPreprocessor):
    """Marks a submission, and writes scores and feedback into its grade cells and the whole report next to it."""

    device = Enum(["cpu", "cuda", "auto"], "auto", help="Where the exercises' tensors are.").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        about = resources["nbgrader"]
        directory = self.parent.parent.coursedir
        name = f"{about['student']}/{about['assignment']}/{about['notebook']}.ipynb"
        digest = nb.metadata.pop(SUBMISSION, "")
        place = directory.format_path(directory.submitted_directory, about["student"], about["assignment"])
        about[SUBMISSION_TIME] = StampFormat.of_course(directory).read(stamp_at(Path(place)))
        files = pictures.pop(nb)
        report = _marker(self.device, directory.root).report(name, about["assignment"], nb, digest)
        write_report(nb, report)
        resources.setdefault("outputs", {})[REPORT_FILE] = msgspec.json.format(msgspec.json.encode(report))
        resources["outputs"].update(files)
        return nb, resources


class _Marker:
    """A marking process for plain `nbgrader autograde` and formgrader, kept for as long as this process lives."""

    def __init__(self, device: Any, course_folder: str) -> None:
        self._device = device
        self._folder = Path(course_folder)
        self._marker = self._started()
        atexit.register(lambda: self._marker.close())

    def report(self, name: str, unit: str, node: Any, digest: str) -> Report:
        content = damage(node) or nbformat.writes(without_put_back(node)).encode()
        self._marker = running(self._marker, self._start_again)
        try:
            return self._marker.mark(name, content, unit, digest=digest)
        except MarkerStopped as stopped:
            return stopped_at(name, stopped, self._marker.ready, unit=unit, digest=digest)
        except MarkerRefused:
            self._start_again()  # for the next submission: what was missing may be available by then
            raise

    def _start_again(self) -> Marker:
        self._marker.close()
        self._marker = self._started()
        return self._marker

    def _started(self) -> Marker:
        return Marker(self._device, class_folder=self._folder, private=(self._folder,))


_markers: dict[tuple[str, str], _Marker] = {}


def _marker(device: str, course_folder: str) -> _Marker:
    if (device, course_folder) not in _markers:
        _markers[device, course_folder] = _Marker(device, course_folder)
    return _markers[device, course_folder]

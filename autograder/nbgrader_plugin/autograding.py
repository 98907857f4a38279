"""Steps of `nbgrader autograde` and formgrader: the sandbox runs a submission's cells, the hidden tests grade them."""

import atexit
import io
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum

from ..course.notebook_file import read_in, unreadable
from ..course.submitted_files import OpenedFolder
from ..gradebook import clean_notebook, lateness, records
from ..gradebook.clean_notebook import clean_or_stand_in, damage, without_put_back
from ..gradebook.entry import unmarked
from ..gradebook.reweights import of_class, reweighted
from ..gradebook.time_stamp import StampFormat, SubmissionTime, stamp_at
from ..pool.grading_pool import GradingPool, GradingProcess, GradingRefused
from ..pool.requests import Device, GradeNotebook
from ..report import REPORT_FILE, Report
from ..reports.graded_notebook import write_report

_SUBMISSION = "autograder_submission"
"""Key in a notebook's metadata between the exporter and the grading: SHA-256 of the file that was read."""
_SUBMISSION_TIME = "autograder_submission_time"
"""Key in `resources["nbgrader"]` for `RecordReport`: the `SubmissionTime` according to the time stamp."""


class SubmissionExporter(NotebookExporter):
    """Reads and writes notebooks for nbgrader; an unreadable file becomes a row with a reason, not the batch's end."""

    def from_filename(self, filename: str, resources: dict[str, Any] | None = None, **kw: Any) -> Any:
        """Read a notebook, which nbgrader does twice: as it was submitted, and as it was cleaned and written again.

        The released notebook replaces a damaged one, with the reason in its metadata.
        """
        resources = resources or {}
        path = Path(filename)
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        if self.parent._sanitizing:  # nbgrader's Autograde: this is the student's own file
            node = read_submission(path, resources["nbgrader"]["assignment"], Path(self.parent.coursedir.root))
        else:
            node = nbformat.read(path, as_version=4)
        return self.from_file(io.StringIO(nbformat.writes(node)), resources=resources, **kw)


def read_submission(path: Path, unit: str, class_folder: Path) -> Any:
    """Return the notebook at submitted/STUDENT/UNIT/, cleaned, with the file's digest; neither folder may be a link."""
    try:
        with OpenedFolder.of_student(path.parent) as folder:
            file = read_in(folder, path.name)
    except (OSError, ValueError) as error:
        file = unreadable(error)
    node = clean_or_stand_in(file.content, unit, class_folder)
    node.metadata[_SUBMISSION] = file.digest
    return node


class MarkExercises(NbGraderPreprocessor):
    """Replaces nbgrader's `Execute`: grades a submission, and writes scores, feedback and the report."""

    device = Enum(["cpu", "cuda", "auto"], "auto", help="Where the exercises' tensors are.").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        about = resources["nbgrader"]
        directory = self.parent.parent.coursedir
        name = f"{about['student']}/{about['assignment']}/{about['notebook']}.ipynb"
        digest = nb.metadata.pop(_SUBMISSION, "")
        folder = directory.format_path(directory.submitted_directory, about["student"], about["assignment"])
        about[_SUBMISSION_TIME] = StampFormat.of_course(directory).read(stamp_at(Path(folder)))
        files = clean_notebook.pop_files(nb)
        content = damage(nb) or nbformat.writes(without_put_back(nb)).encode()
        pool = _pool(self.device, directory.root)
        try:
            report = pool.grade(GradeNotebook(name, content, about["assignment"], digest))
        except GradingRefused:
            pool.end_processes()  # formgrader may run for weeks: new ones find what is missing now
            raise
        report = reweighted(report, of_class(directory, about["assignment"]))
        write_report(nb, report)
        resources.setdefault("outputs", {})[REPORT_FILE] = msgspec.json.format(msgspec.json.encode(report))
        resources["outputs"].update(files)
        return nb, resources


class RecordReport(NbGraderPreprocessor):
    """Runs after `SaveAutoGrades`, and records what that step does not; `autograder grade` records these itself.

    - A cell without a mark because of our own fault, which nbgrader would give 0.
    - The provenance of the mark.
    - A time stamp that does not determine a time.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        about = resources["nbgrader"]
        report = msgspec.json.decode(resources["outputs"][REPORT_FILE], type=Report)
        has_no_mark = unmarked(report)
        with Gradebook(about["db_url"]) as gradebook:
            entry = gradebook.find_submission_notebook(about["notebook"], about["assignment"], about["student"])
            for grade in entry.grades:
                if has_no_mark(grade.name):
                    grade.auto_score = None
                    grade.needs_manual_grade = True
            records.METADATA.create_all(gradebook.engine)
            time = about.get(_SUBMISSION_TIME, SubmissionTime())
            lateness.record_time(gradebook.db, entry, time, report.submission)
            # No feedback page of the autograder shows this mark yet.
            records.put_provenance(gradebook.db, entry.id, records.provenance_of(report, page=""))
            gradebook.db.commit()
        return nb, resources


@cache
def _pool(device: Device, course_folder: str) -> GradingPool:
    """Return the grading process for all submissions of this process."""
    folder = Path(course_folder)
    pool = GradingPool(lambda number: GradingProcess(device, class_folder=folder, private=(folder,)))
    atexit.register(pool.close)
    return pool

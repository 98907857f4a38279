"""The settings of every course's `nbgrader_config.py`, and the classes that they name.

With these settings, nbgrader reads submissions as data, and feedback pages show students' texts as text. The hidden
tests give the grades, and the sandbox runs a submission's cells. `ClassLatePenalty` computes the points that lateness
costs.
"""

import atexit
import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader import api
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import CsvExportPlugin, LateSubmissionPlugin
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum

from .. import output_files
from ..course import settings
from ..course.notebook_file import read_in, unreadable
from ..course.settings import DAY, FILE, read_secret
from ..course.submitted_files import OpenedFolder
from ..gradebook import clean_notebook, records
from ..gradebook.clean_notebook import clean_or_stand_in, damage, without_put_back
from ..gradebook.entry import Entry, find_cells, find_entry
from ..gradebook.lateness import Deadlines, late_days
from ..gradebook.nbgrader_course import CourseProblem, newest_version, put_commands_on_path
from ..gradebook.reweights import of_class, reweighted
from ..gradebook.tables import number, text
from ..gradebook.time_stamp import StampFormat, SubmissionTime, stamp_at
from ..pool.grading_pool import GradingPool, GradingProcess, GradingRefused
from ..pool.requests import Device, GradeNotebook
from ..report import REPORT_FILE, Report
from ..reports import pages
from ..reports.pages import show_edits, write_report, write_scores
from . import guards

_PLUGIN = __package__
_SUBMISSION = "autograder_submission"
"""Key in a notebook's metadata between the exporter and the grading: SHA-256 of the file that was read."""
_REPAIR = "autograder_repair"
"""Key in `resources["nbgrader"]` for `RepairAnswers`: adds repairs of the submission's answers to its report."""
_SUBMISSION_TIME = "autograder_submission_time"
"""Key in `resources["nbgrader"]` for `RecordReport`: the `SubmissionTime` according to the time stamp."""
_HEADER = (
    "assignment,duedate,timestamp,student_id,last_name,first_name,email,"
    "raw_score,late_submission_penalty,score,max_score\n"
)


def put_into(c: Any, folder: Path) -> None:
    """Set nbgrader's configuration `c` for the course, or the class, in this folder; later settings override it."""
    put_commands_on_path()
    api.get_alembic_version = newest_version
    c.CourseDirectory.root = str(folder)
    c.Exchange.root = str(folder / "exchange")

    # The exchange holds what strangers put there: no link in it is followed, and nobody hands in for somebody else.
    c.ExchangeFactory.release_assignment = f"{_PLUGIN}.exchange.ReleaseUnit"
    c.ExchangeFactory.collect = f"{_PLUGIN}.exchange.CollectSubmissions"
    c.ExchangeFactory.release_feedback = f"{_PLUGIN}.exchange.ReleaseFeedback"

    # The whole report is next to each mark, for the instructor; students get feedback pages without it.
    c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", REPORT_FILE]

    # Students' stubs: a definition that can be run, and that says it is not written when it is called.
    c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\nraise NotImplementedError()"}

    # Nobody's name is a formula in a spreadsheet.
    c.ExportApp.plugin_class = f"{__name__}.GradesCsv"

    # Whatever is among the submissions, no name or time stops a run and no link is followed.
    guards.guard()

    # Submissions are read as data and marked outside the student's process; no kernel is started.
    c.Autograde.exporter_class = f"{__name__}.SubmissionExporter"
    c.Autograde.autograde_preprocessors = [
        f"{__name__}.MarkExercises",  # instead of nbgrader's Execute
        "nbgrader.preprocessors.IgnorePattern",
        "nbconvert.preprocessors.ClearMetadataPreprocessor",
        "nbgrader.preprocessors.LimitOutput",
        "nbgrader.preprocessors.SaveAutoGrades",
        f"{__name__}.RecordReport",
        "nbgrader.preprocessors.AssignLatePenalties",
        f"{__name__}.RepairAnswers",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.AssignLatePenalties.plugin_class = f"{__name__}.ClassLatePenalty"
    c.OverwriteCells.add_missing_cells = True

    # Formgrader and feedback pages: what a student wrote is text there, and nothing is loaded from another machine.
    # A confined process formats it, within limits; past them it is shown as plain text.
    c.HTMLExporter.filters = pages.filters(pages.of_this_process)
    c.HTMLExporter.default_preprocessors = [f"{pages.__name__}.PageBegins"]
    c.HTMLExporter.extra_template_basedirs = pages.templates()
    c.HTMLExporter.template_file = pages.PAGE
    c.GenerateFeedback.preprocessors = [f"{__name__}.ReadGrades"]  # instead of nbgrader's GetGrades

    # If formgrader is reading this: ids and names of students are text on its own pages too.
    guards.make_safe()


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
        pool = _current_pool(self.device, directory.root)
        request = GradeNotebook(name, content, about["assignment"], digest)
        about[_REPAIR] = partial(pool.repair, request)
        try:
            report = pool.grade(request)
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
        with _opened_entry(about, self.config) as entry:
            entry.put(nb, report)
            entry.put_time(about.get(_SUBMISSION_TIME, SubmissionTime()), report.submission)
            # No feedback page of the autograder shows this mark yet.
            entry.put_provenance(records.provenance_of(report, page=""))
        return nb, resources


class RepairAnswers(NbGraderPreprocessor):
    """Searches for repairs of unexplained answers, as `autograder grade` does. Runs once the points are recorded."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        report = msgspec.json.decode(resources["outputs"][REPORT_FILE], type=Report)
        if report.has_unexplained:
            report = resources["nbgrader"][_REPAIR](report)
            write_scores(nb, report)
            resources["outputs"][REPORT_FILE] = msgspec.json.format(msgspec.json.encode(report))
        return nb, resources


_secrets: dict[GradingPool, str] = {}
"""The course's secret when the process of a pool was last replaced."""


def _current_pool(device: Device, course_folder: str) -> GradingPool:
    """Return the pool; after a change of the course's secret, with a new process. Formgrader may run for weeks."""
    pool, secret = _pool(device, course_folder), read_secret()
    if _secrets.setdefault(pool, secret) != secret:
        pool.end_processes()
        _secrets[pool] = secret
    return pool


@contextmanager
def _opened_entry(about: Any, config: Any) -> Iterator[Entry]:
    """Open a student's entry in the gradebook, and commit what the block changes. about: nbgrader's resources."""
    deadlines = Deadlines.of_course(CourseDirectory(config=config))
    with Gradebook(about["db_url"]) as gradebook:
        records.METADATA.create_all(gradebook.engine)
        cells = find_cells(gradebook.db, about["assignment"])
        entry = cells and find_entry(gradebook.db, about["assignment"], cells, about["student"], deadlines)
        if not entry:
            raise MissingEntry(f"No submission of {about['assignment']} by {about['student']}")
        yield entry
        gradebook.db.commit()


@cache
def _pool(device: Device, course_folder: str) -> GradingPool:
    """Return the grading process for all submissions of this process."""
    folder = Path(course_folder)
    pool = GradingPool(lambda number: GradingProcess(device, class_folder=folder, private=(folder,)))
    atexit.register(pool.close)
    return pool


class ClassLatePenalty(LateSubmissionPlugin):
    """Deducts points for late submission by the rule in [late_penalty], or else by nbgrader's `penalty_method`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.rule = settings.of_late_penalty(Path(self.config.CourseDirectory.root))
        if self.rule and self.penalty_method != "none":
            raise CourseProblem(
                f"The penalty for lateness is set twice: [late_penalty] in {FILE}, and "
                "LateSubmissionPlugin.penalty_method in nbgrader_config.py. Delete one of the two settings."
            )

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points that a late submission loses; None for no penalty.

        `parent` is nbgrader's preprocessor, which holds the gradebook and the assignment's name.
        """
        if self.rule is None:
            penalty: float | None = super().late_submission_penalty(student_id, score, total_seconds_late)
            return penalty
        late = timedelta(seconds=total_seconds_late)
        if self.rule.late_days:
            unit = self.parent.assignment_id
            days = late_days(self.parent.gradebook.db, self.rule, unit, student_id)
            late -= self.rule.days_spent(late, sum(days.get(student_id, ()))) * DAY
        return self.rule.points(score, late)


class ReadGrades(NbGraderPreprocessor):
    """Replaces nbgrader's `GetGrades`: puts what the gradebook holds into a notebook, as `autograder grade` does."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        about = resources["nbgrader"]
        with _opened_entry(about, self.config) as entry:
            shown = entry.shown()
        about |= shown.put_into(nb)
        if shown.is_past_due:
            show_edits(nb)
        return nb, resources


class GradesCsv(CsvExportPlugin):
    """Writes the rows and columns of nbgrader's own plugin, and takes its options; no name is a formula."""

    def export(self, gradebook: Any) -> None:
        """Write the table of grades to a file, by default grades.csv."""
        destination = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", destination)
        written = io.StringIO(newline="")
        written.write(_HEADER)
        table = csv.writer(written, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        for assignment, student in product(gradebook.assignments, gradebook.students):
            if _is_wanted(assignment.name, self.assignment) and _is_wanted(student.id, self.student):
                table.writerow(_row(gradebook, assignment, student))
        try:
            output_files.write({destination: written.getvalue().encode()})
        except output_files.NotWritable as reason:
            self.log.error("%s", reason)
            raise SystemExit(1) from None


def _is_wanted(name: str, names: Sequence[object]) -> bool:
    return not names or name in map(str, names)


def _row(gradebook: Any, assignment: Any, student: Any) -> list[object]:
    """Return the student's row for the assignment; zeros if nothing was submitted."""
    timestamp, raw, penalty = None, 0.0, 0.0
    with suppress(MissingEntry):
        submission = gradebook.find_submission(assignment.name, student.id)
        timestamp, raw, penalty = submission.timestamp, submission.score, submission.late_submission_penalty
    person = (student.id, student.last_name, student.first_name, student.email)
    texts = [text(value) for value in (assignment.name, assignment.duedate, timestamp, *person)]
    figures = (raw, penalty, max(0.0, raw - penalty), assignment.max_score)
    return [*texts, *(float(number(points)) for points in figures)]

"""The settings of every course's `nbgrader_config.py`: submissions are read as data, graded apart, shown as text."""

from pathlib import Path
from typing import Any

from nbgrader import api

from ..gradebook.nbgrader_course import newest_version, put_commands_on_path
from ..report import REPORT_FILE
from ..reports import pages
from . import guards

_PLUGIN = __package__


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
    c.ExportApp.plugin_class = f"{_PLUGIN}.grades.GradesCsv"

    # Whatever is among the submissions, no name or time stops a run and no link is followed.
    guards.guard()

    # Submissions are read as data and marked outside the student's process; no kernel is started.
    c.Autograde.exporter_class = f"{_PLUGIN}.grades.SubmissionExporter"
    c.Autograde.autograde_preprocessors = [
        f"{_PLUGIN}.grades.MarkExercises",  # in place of nbgrader's Execute
        "nbgrader.preprocessors.IgnorePattern",
        "nbconvert.preprocessors.ClearMetadataPreprocessor",
        "nbgrader.preprocessors.LimitOutput",
        "nbgrader.preprocessors.SaveAutoGrades",
        f"{_PLUGIN}.grades.RecordReport",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.AssignLatePenalties.plugin_class = f"{_PLUGIN}.grades.ClassLatePenalty"
    c.OverwriteCells.add_missing_cells = True

    # Formgrader and feedback pages: what a student wrote is text there, and nothing is loaded from another machine.
    # A confined process formats it, within limits; past them it is shown as plain text.
    c.HTMLExporter.filters = pages.filters(pages.of_this_process)
    c.HTMLExporter.default_preprocessors = [f"{pages.__name__}.PageBegins"]
    c.HTMLExporter.extra_template_basedirs = pages.templates()
    c.HTMLExporter.template_file = pages.PAGE
    c.GenerateFeedback.preprocessors = [f"{_PLUGIN}.grades.ReadGrades"]  # in place of nbgrader's GetGrades

    # If formgrader is reading this: ids and names of students are text on its own pages too.
    guards.make_safe()

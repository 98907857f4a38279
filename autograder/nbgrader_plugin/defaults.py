"""What every course's `nbgrader_config.py` sets: submissions are read as data, marked apart, and shown as text."""

from pathlib import Path
from typing import Any

from ..gradebook import tools
from ..report import REPORT_FILE
from ..reports import page_filters
from . import formgrader_pages, guarded

_PLUGIN = __package__


def put_into(c: Any, folder: Path) -> None:
    """Sets nbgrader's configuration `c` for the course, or the class, in this folder. What is set after it counts."""
    tools.put_on_path()
    tools.make_gradebooks_without_a_command()
    c.CourseDirectory.root = str(folder)
    c.Exchange.root = str(folder / "exchange")

    # The exchange holds what strangers put there: no link in it is followed, and nobody hands in for somebody else.
    c.ExchangeFactory.collect = f"{_PLUGIN}.collect.CollectHandIns"
    c.ExchangeFactory.release_feedback = f"{_PLUGIN}.release_feedback.ReleaseFeedback"

    # The whole report is next to each mark, for the instructor; students get feedback pages without it.
    c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", REPORT_FILE]

    # Students' stubs: a definition that can be run, and that says it is not written when it is called.
    c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\nraise NotImplementedError()"}

    # Nobody's name is a formula in a spreadsheet.
    c.ExportApp.plugin_class = f"{_PLUGIN}.grades_csv.GradesCsv"

    # Whatever is among the submissions, no name or time stops a run and no link is followed.
    guarded.guard()

    # Submissions are read as data and marked outside the student's process; no kernel is started.
    c.Autograde.exporter_class = f"{_PLUGIN}.exporter.SubmissionExporter"
    c.Autograde.autograde_preprocessors = [
        f"{_PLUGIN}.preprocessor.MarkExercises",  # in place of nbgrader's Execute
        "nbgrader.preprocessors.IgnorePattern",
        "nbconvert.preprocessors.ClearMetadataPreprocessor",
        "nbgrader.preprocessors.LimitOutput",
        "nbgrader.preprocessors.SaveAutoGrades",
        f"{_PLUGIN}.record_report.RecordReport",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.OverwriteCells.add_missing_cells = True

    # Formgrader and feedback pages: what a student wrote is text there, and nothing is loaded from another machine.
    # A confined process formats it, within limits; past them it is shown as plain text.
    c.HTMLExporter.filters = page_filters.filters(page_filters.of_this_process)
    c.HTMLExporter.default_preprocessors = [f"{page_filters.__name__}.PageBegins"]
    c.HTMLExporter.extra_template_basedirs = page_filters.templates()
    c.HTMLExporter.template_file = page_filters.PAGE
    c.GenerateFeedback.preprocessors = [
        f"{_PLUGIN}.grades.ReadGrades",  # in place of nbgrader's GetGrades
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]

    # If formgrader is reading this: ids and names of students are text on its own pages too.
    formgrader_pages.make_safe()

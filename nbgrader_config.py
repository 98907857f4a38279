"""nbgrader's settings for this course. Read by every `nbgrader` command here, by formgrader and by `autograder`."""

from pathlib import Path

from autograder.nbgrader_plugin import formgrader_pages, guarded, page_filters, tools

tools.put_on_path()
tools.make_gradebooks_without_a_command()

c = get_config()  # noqa: F821  (nbgrader provides it)

c.CourseDirectory.course_id = "attention"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

# Where assignments are released and collected: a folder that students' accounts can read and write.
c.Exchange.root = str(Path(__file__).resolve().parent / "exchange")

# The exchange holds what strangers put there: no link in it is followed, and nobody hands in for somebody else.
c.ExchangeFactory.collect = "autograder.nbgrader_plugin.collect.CollectHandIns"
c.ExchangeFactory.release_feedback = "autograder.nbgrader_plugin.release_feedback.ReleaseFeedback"

# The whole report is next to each mark, for the instructor; students get feedback pages without it.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "report.json"]

# Students' stubs: a definition that can be run, and that says it is not written when it is called.
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\nraise NotImplementedError()"}

# Nobody's name is a formula in a spreadsheet.
c.ExportApp.plugin_class = "autograder.nbgrader_plugin.grades_csv.GradesCsv"

# Whatever is among the submissions, no name or time stops a run and no link is followed.
guarded.guard()

# Submissions are read as data and marked outside the student's process; no kernel is started.
c.Autograde.exporter_class = "autograder.nbgrader_plugin.exporter.SubmissionExporter"
c.Autograde.autograde_preprocessors = [
    "autograder.nbgrader_plugin.preprocessor.MarkExercises",  # in place of nbgrader's Execute
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "autograder.nbgrader_plugin.record_report.RecordReport",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.OverwriteCells.add_missing_cells = True

# Formgrader and feedback pages: what a student wrote is text there, and nothing is loaded from another machine.
# A confined process formats it, within limits; past them it is shown as plain text.
c.HTMLExporter.filters = page_filters.filters(page_filters.of_this_process)
c.HTMLExporter.default_preprocessors = ["autograder.nbgrader_plugin.page_filters.PageBegins"]
c.HTMLExporter.extra_template_basedirs = page_filters.templates()

# If formgrader is reading this: ids and names of students are text on its own pages too.
formgrader_pages.make_safe()

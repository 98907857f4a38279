"""nbgrader's settings for this course. Read by every `nbgrader` command here, by formgrader and by `autograder`."""

from pathlib import Path

from autograder.nbgrader_plugin import pages

c = get_config()  # noqa: F821  (nbgrader provides it)

c.CourseDirectory.course_id = "attention"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

# Where assignments are released to and collected from: put it where students' accounts can read and write.
c.Exchange.root = str(Path(__file__).resolve().parent / "exchange")

# Beside each mark lies the whole report, for the instructor; feedback pages go to students without it.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "report.json"]

# Students' stubs: a definition that can be run, and that says so when it is called.
c.ClearSolutions.code_stub = {"python": "# YOUR CODE HERE\nraise NotImplementedError()"}

# Submissions are read as data, marked outside the student's process, and no kernel is started.
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
c.HTMLExporter.filters = {"markdown2html": pages.markdown2html, "highlight_code": pages.highlight_code}
c.HTMLExporter.extra_template_basedirs = pages.templates()

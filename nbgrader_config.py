"""nbgrader's settings for this course. Read by every `nbgrader` command here, by formgrader and by `autograder`."""

from pathlib import Path

from autograder.nbgrader_plugin import defaults

c = get_config()  # noqa: F821  (nbgrader provides it)
defaults.put_into(c, Path(__file__).resolve().parent)

c.CourseDirectory.course_id = "attention"

# Where assignments are released and collected: a folder that students' accounts can read and write.
c.Exchange.root = str(Path(__file__).resolve().parent / "exchange")

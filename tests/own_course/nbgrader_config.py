"""nbgrader's settings for this course."""

from pathlib import Path

from autograder.nbgrader_plugin import defaults

c = get_config()  # noqa: F821  (nbgrader provides it)
defaults.put_into(c, Path(__file__).resolve().parent)
c.CourseDirectory.course_id = "layers"

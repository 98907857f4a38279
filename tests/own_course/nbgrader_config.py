"""nbgrader's settings for this course."""

from pathlib import Path

try:
    from autograder.nbgrader_plugin import defaults
except ImportError as error:  # nbgrader would go on without these settings, and run submissions without isolation
    raise SystemExit(
        f"The autograder cannot be used: {error}. Is this the environment that it is installed in?"
    ) from None

c = get_config()  # noqa: F821  (nbgrader provides it)
defaults.put_into(c, Path(__file__).resolve().parent)
c.CourseDirectory.course_id = "layers"

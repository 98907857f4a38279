"""nbgrader's settings for the sample class: those of the course, in this folder. Read by `make lab COURSE=demo`."""

from pathlib import Path

c = get_config()  # noqa: F821  (nbgrader provides it)
load_subconfig("../nbgrader_config.py")  # noqa: F821

c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.Exchange.root = str(Path(__file__).resolve().parent / "exchange")

"""The options of the commands that are about a class: its folder, its roster, and where the roster's ids are."""

from pathlib import Path
from typing import Annotated

import typer

from ..course.folder import folder, is_class, use
from .paths import named

Course = Annotated[
    Path | None,
    typer.Option(
        "--course",
        parser=named,
        metavar="DIR",
        help="The class's folder, with submissions and gradebook; the default: this folder, if it is one.",
    ),
]
RosterFile = Annotated[
    Path | None,
    typer.Option(
        "--roster",
        parser=named,
        metavar="FILE",
        help="A CSV file with a column id, or what Canvas or Moodle exports; COURSE/roster.csv where there is one.",
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id-column",
        help="The roster's column with the students' ids; `Email address before @` is the part before the @.",
    ),
]


def class_folder(given: Path | None) -> Path:
    """The folder that `--course` gives, else the one that we are in, if it is a class's, else the course's own.

    From here on this process serves the course that it belongs to, so it is asked for before any settings are.
    """
    here = Path.cwd()
    has_units = (here / "nbgrader_config.py").is_file() and (here / "source").is_dir()
    root = given or (here if has_units and is_class(here) else None)
    if root is None:
        return folder()
    use(root)
    return root

"""The options of the commands that are about a class: its folder, its roster, and where the roster's ids are."""

from pathlib import Path
from typing import Annotated

import typer

Course = Annotated[
    Path | None,
    typer.Option("--course", help="The class's folder, with submissions and gradebook; the default: the course's own."),
]
RosterFile = Annotated[
    Path | None,
    typer.Option(
        "--roster",
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

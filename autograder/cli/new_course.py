"""`autograder new-course`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .. import course
from .paths import named
from .saying import console, refuse, results, shown


def new_course(
    place: Annotated[
        Path, typer.Argument(parser=named, metavar="DIR", help="The folder to make: not there yet, or empty.")
    ],
    units: Annotated[list[str] | None, typer.Argument(metavar="[UNIT]...", help="The units; all if not given.")] = None,
) -> None:
    """Make a folder for a class: its units, its settings for nbgrader, a roster to fill in, an exchange."""
    from ..classroom import new_course
    from ..gradebook.course_directory import CourseProblem

    try:
        names = new_course.new_course(place, units or ())
    except (course.UnknownUnit, course.UnusableUnit, CourseProblem, new_course.NotMade) as reason:
        refuse(reason)
    roster, settings = place / "roster.csv", place / "nbgrader_config.py"
    with results():
        for said in (
            f"{place}: {', '.join(names)}",
            f"Write who is in the class into {roster}, and where students' accounts can write into {settings} "
            f"(Exchange.root). `make lab COURSE={shlex.quote(str(place))}` opens the course.",
        ):
            console.print(shown(said), highlight=False, soft_wrap=True)

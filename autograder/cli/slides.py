"""`autograder slides`."""

from pathlib import Path
from typing import Annotated

import typer

from ..course import UnknownUnit, UnusableUnit
from ..output_files import NotWritable
from . import paths
from .roster import Course, class_folder
from .saying import console, refuse, results, shown

_FOLDER = "slides"
"""In the course's folder, or the class's."""


def slides(
    unit: Annotated[str, typer.Argument(help="The unit, e.g. self_attention.")],
    output: Annotated[
        Path | None,
        typer.Option(
            parser=paths.named,
            metavar="FILE",
            help="The file to write, `-` for standard output; COURSE/slides/UNIT.html if not given.",
        ),
    ] = None,
    course_folder: Course = None,
) -> None:
    """Write slides for teaching a unit: its text, its guesses, and what its cells draw with the answers in."""
    from ..slides.composing import compose
    from ..slides.page import page
    from ..slides.running import NotRun

    root = class_folder(course_folder).resolve()
    place = output or root / _FOLDER / f"{unit}.html"
    try:
        paths.check(place, makes_folder=True)
        paths.write(place, page(compose(root, unit)).encode(), makes_folder=True)
    except (UnknownUnit, UnusableUnit, NotRun, NotWritable) as reason:
        refuse(reason)
    if place == paths.STANDARD_OUTPUT:
        return
    with results():
        console.print(shown(place), highlight=False, soft_wrap=True)

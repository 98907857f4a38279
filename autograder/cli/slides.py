"""`autograder slides`."""

from pathlib import Path
from typing import Annotated

import typer

from ..course import UnknownUnit, UnusableUnit
from .roster import Course, class_folder
from .saying import console, refuse, results, shown

_FOLDER = "slides"
"""In the course's folder, or the class's."""
_MODE = 0o644


def slides(
    unit: Annotated[str, typer.Argument(help="The unit, e.g. self_attention.")],
    output: Annotated[
        Path | None, typer.Option(help="The file to write; COURSE/slides/UNIT.html if not given.")
    ] = None,
    course_folder: Course = None,
) -> None:
    """Write slides for teaching a unit: its text, its guesses, and what its cells draw with the answers in."""
    from ..classroom import whole_files
    from ..slides.composing import compose
    from ..slides.page import page
    from ..slides.running import NotRun

    root = class_folder(course_folder).resolve()
    place = output or root / _FOLDER / f"{unit}.html"
    try:
        written = page(compose(root, unit)).encode()
        place.parent.mkdir(parents=True, exist_ok=True)
        whole_files.write(place, written, _MODE)
    except (UnknownUnit, UnusableUnit, NotRun) as reason:
        refuse(reason)
    except OSError as error:
        refuse(f"The slides cannot be written: {error}. Give another place with --output.")
    with results():
        console.print(shown(place), highlight=False, soft_wrap=True)

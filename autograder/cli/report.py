"""`autograder report`."""

from pathlib import Path
from typing import Annotated

import typer

from ..course import UnknownUnit
from .roster import Course, class_folder
from .saying import console, refuse, results, shown


def report(
    unit: Annotated[str, typer.Argument(help="The unit, e.g. self_attention.")],
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Leave out whatever could tell who is who.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="A folder, or a file that ends in .html; COURSE/reports/UNIT/ if not given."),
    ] = None,
    course_folder: Course = None,
) -> None:
    """Write the class report: a page on how a class did in a unit, and the same as CSV and JSON."""
    from ..class_report import files
    from ..class_report.composing import compose
    from ..gradebook.course_directory import CourseProblem
    from ..gradebook.marks import NoMarks

    root = class_folder(course_folder).resolve()
    try:
        made = compose(root, unit, is_anonymous=anonymous)
        place = files.default_place(root, made)
        if output is not None:
            place = output if output.suffix == files.PAGE else output / place.name
        written = files.write(made, place)
    except (UnknownUnit, NoMarks, CourseProblem) as reason:
        refuse(reason)
    except OSError as error:
        refuse(f"The report cannot be written: {error}. Give another place with --output.")
    with results():
        for path in written:
            console.print(shown(path), highlight=False, soft_wrap=True)

"""`autograder report`."""

from pathlib import Path
from typing import Annotated

import typer

from ..course import UnknownUnit
from ..output_files import NotWritable
from . import paths
from .roster import Course, class_folder
from .saying import console, refuse, results, shown


def report(
    unit: Annotated[str, typer.Argument(help="The unit, e.g. self_attention.")],
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Leave out whatever could tell who is who.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            parser=paths.named,
            metavar="PATH",
            help="A folder, or a file that ends in .html; COURSE/reports/UNIT/ if not given.",
        ),
    ] = None,
    course_folder: Course = None,
) -> None:
    """Write the class report: a page on how a class did in a unit, and the same as CSV and JSON."""
    from ..gradebook.course_directory import CourseProblem
    from ..gradebook.marks import NoMarks
    from ..reports import class_report

    root = class_folder(course_folder).resolve()
    try:
        paths.refuse_standard_output(output, "Name a folder, or a file that ends in .html.")
        if output and output.is_symlink():
            raise NotWritable(f"{output} is a link. Give the name of the folder, or file, itself.")
        page = output or root / class_report.FOLDER / unit
        if page.suffix != class_report.PAGE:
            page = class_report.page_path(page, is_anonymous=anonymous)
        class_report.check(page)
        written = class_report.write(class_report.compose(root, unit, is_anonymous=anonymous), page)
    except (UnknownUnit, NoMarks, CourseProblem, NotWritable) as reason:
        refuse(reason)
    with results():
        for path in written:
            console.print(shown(path), highlight=False, soft_wrap=True)

"""`autograder export`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import course
from ..output_files import NotWritable
from . import paths
from .roster import Course, IdColumn, RosterFile, class_folder
from .saying import refuse, remark, short, some

if TYPE_CHECKING:  # nbgrader takes seconds to import
    from ..lms.grade_tables import MarkedClass, Table


class Format(StrEnum):
    """Whose table it is to be."""

    CSV = "csv"
    CANVAS = "canvas"
    MOODLE = "moodle"


def export(
    units: Annotated[list[str], typer.Argument(help="The units, e.g. self_attention.")],
    form: Annotated[
        Format, typer.Option("--format", help="For a spreadsheet, Canvas's gradebook, or Moodle's grades.")
    ] = Format.CSV,
    output: Annotated[
        Path | None,
        typer.Option(parser=paths.named, metavar="FILE", help="The file to write; `-`, or none, is standard output."),
    ] = None,
    assignment: Annotated[
        list[str] | None, typer.Option(help="UNIT=COLUMN: the unit's assignment among Canvas's columns.")
    ] = None,
    roster: RosterFile = None,
    id_column: IdColumn = None,
    course_folder: Course = None,
) -> None:
    """Write the marks in the gradebook as a table: of each exercise and written question, or for Canvas or Moodle."""
    from ..gradebook.class_list import ROSTER
    from ..gradebook.course_directory import CourseProblem
    from ..gradebook.database import FILE
    from ..gradebook.marks import NoMarks
    from ..gradebook.roster import BadRoster
    from ..gradebook.spreadsheet import as_csv
    from ..lms.grade_tables import NoTable, marked_class

    place = output or paths.STANDARD_OUTPUT
    try:
        root = class_folder(course_folder).resolve()
        names = _assignments(assignment or [], units)
        paths.check(place, [roster or root / ROSTER, root / FILE])
        marks = marked_class(root, list(dict.fromkeys(units)), roster, id_column)
        table = _table(form, marks, names)
        paths.write(place, as_csv(table.rows).encode("utf-8", "replace"))
    except (course.UnknownUnit, NoMarks, BadRoster, CourseProblem, NoTable) as reason:
        refuse(reason)
    except NotWritable as reason:
        refuse(reason)
    for sentence in (*marks.roster.remarks, *table.remarks):
        remark(sentence)
    if place != paths.STANDARD_OUTPUT:
        remark(f"Written: {short(place.absolute())}, {len(marks.roster.students)} students.")
    if table.without:
        remark(f"NOT ON THE ROSTER, and left out: {some(table.without)}.")
    if table.without or marks.roster.left_out:
        raise typer.Exit(1)


def _assignments(given: list[str], units: list[str]) -> dict[str, str]:
    """By unit, the column that was named for it."""
    found = dict(one.partition("=")[::2] for one in given)
    for unit, column in found.items():
        if unit not in units or not column:
            refuse(f"`--assignment {unit}={column}` is not UNIT=COLUMN, with one of the units that are exported.")
    return found


def _table(form: Format, marks: "MarkedClass", assignments: dict[str, str]) -> "Table":
    from ..lms import grade_tables

    if form == Format.CANVAS:
        return grade_tables.for_canvas(marks, assignments)
    if assignments:
        refuse("`--assignment` names columns of Canvas's: it goes with `--format canvas`.")
    return grade_tables.for_moodle(marks) if form == Format.MOODLE else grade_tables.for_spreadsheet(marks)

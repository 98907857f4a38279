"""`autograder extend`: students' later due dates in a unit."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import course
from .console import fail, list_names, print_lines, remark
from .options import Course, IdColumn, RosterFile, UnitName, class_folder, path_option

if TYPE_CHECKING:  # nbgrader takes seconds to import
    from ..gradebook.extensions import Extensions, Request


def extend(
    unit: UnitName,
    students: Annotated[list[str] | None, typer.Argument(metavar="[STUDENT]...", help="The students' ids.")] = None,
    until: Annotated[
        str,
        typer.Option(
            metavar="DATE", help="The students' due date, in the class's time zone, for example \"2026-12-03 18:00\"."
        ),
    ] = "",
    by: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="The time after the unit's due date that students get, for example 2d, 36h or 90m."
        ),
    ] = "",
    csv_file: Annotated[
        Path | None, path_option("FILE", "A table with the columns student, and until or by.", "--csv")
    ] = None,
    group: Annotated[
        str, typer.Option(metavar="NAME", help="All students in this group, as the roster's column group says.")
    ] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove the students' extensions.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="Print the unit's extensions, and change nothing.")] = False,
    roster: RosterFile = None,
    id_column: IdColumn = None,
    course_folder: Course = None,
) -> None:
    """Give students a later due date in a unit. It replaces an earlier extension."""
    root = class_folder(course_folder).resolve()
    names = list(dict.fromkeys(students or ()))
    ways = [bool(until or by), csv_file is not None, remove, list_all]
    if sum(ways) != 1 or bool(names or group) == bool(csv_file or list_all):
        fail(
            f"Give students and a date, `autograder extend {unit} STUDENT... --until DATE` or `--by TIME`; or one of "
            "`--csv FILE`, `STUDENT... --remove` and `--list`. For the students of a group, give `--group NAME`."
        )
    from ..gradebook.extensions import Extensions, Request
    from ..gradebook.lateness import exactly

    course.unit(unit, root)
    extensions = Extensions(root, unit, roster, id_column)
    names = list(dict.fromkeys([*names, *(extensions.members(group) if group else ())]))
    due = extensions.due
    if list_all:
        lines = (f"{student}  {due.in_zone(by)}  {exactly(by)}" for student, by in extensions.given.items())
        print_lines([f"{unit}: due {due.in_zone()}, extensions: {len(extensions.given)}", *lines])
        return
    if remove:
        _remove(extensions, unit, names)
    else:
        _give(extensions, unit, dict(_lines(csv_file)) if csv_file else dict.fromkeys(names, Request(until, by)))


def _remove(extensions: "Extensions", unit: str, names: list[str]) -> None:
    if without := [student for student in names if student not in extensions.given]:
        fail(
            f"Without an extension in {unit}: {list_names(without)}. None was removed. "
            f"`autograder extend {unit} --list` prints all extensions."
        )
    extensions.put(dict.fromkeys(names))
    _print_effect(unit, [f"{student}  {extensions.due.in_zone()}" for student in names])


def _give(extensions: "Extensions", unit: str, requests: "dict[str, Request]") -> None:
    from ..gradebook.lateness import exactly

    extensions.refuse_unknown(requests)
    new = {student: extensions.extension(student, request) for student, request in requests.items()}
    extensions.put(new)
    lines = []
    for student, by in new.items():
        before = extensions.given.get(student)
        replaced = f"  (before: {exactly(before)})" if before and before != by else ""
        lines.append(f"{student}  {extensions.due.in_zone(by)}  {exactly(by)}{replaced}")
    _print_effect(unit, lines)


def _print_effect(unit: str, lines: list[str]) -> None:
    print_lines(lines)
    remark(f"`autograder grade {unit}` updates penalties and feedback pages.")


def _lines(path: Path) -> Iterator[tuple[str, "Request"]]:
    """Yield the students of a table with the extensions that it requests."""
    from ..gradebook.extensions import Request
    from ..gradebook.spreadsheet import read_csv

    rows = read_csv(path)
    columns = rows[0].keys() if rows else set()
    if "student" not in columns or not columns & {"until", "by"}:
        fail(
            f"The table {path} needs a header with a column student and a column until or by, and a line for "
            "each student."
        )
    students = [row["student"] for row in rows]
    if repeated := sorted({student for student in students if students.count(student) > 1}):
        fail(f"The table {path} has {list_names(repeated)} more than once.")
    for row in rows:
        yield row["student"], Request(row.get("until", ""), row.get("by", ""))

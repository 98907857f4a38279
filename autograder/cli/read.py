"""`autograder read`: written answers shared out among several readers."""

from pathlib import Path
from typing import Annotated

import typer

from .console import check_new_folder, fail, print_lines, relative_path, remark, write_new_folder
from .options import Course, IdColumn, RosterFile, Section, UnitName, class_folder, named, path_option


def read(
    unit: UnitName,
    sheets: Annotated[
        list[Path] | None,
        typer.Argument(parser=named, metavar="[SHEET]...", help="Filled sheets, whose points are recorded."),
    ] = None,
    readers: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="Share the answers that wait for points out among these readers.")
    ] = "",
    to: Annotated[Path | None, path_option("FOLDER", "With --readers: a new folder for the readers' sheets.")] = None,
    hide_names: Annotated[
        bool, typer.Option("--hide-names", help="With --readers: write codes instead of the students' ids.")
    ] = False,
    roster: RosterFile = None,
    id_column: IdColumn = None,
    section: Section = None,
    course_folder: Course = None,
) -> None:
    """Share written answers out among several readers, or record the points from their sheets.

    Without sheets and readers, say which answers still wait for points. Exit code 1: some points were not recorded.
    """
    from ..classroom import readings
    from ..gradebook.roster import class_list

    if bool(readers) != bool(to) or (sheets and readers) or (not readers and (hide_names or section)):
        fail(
            f"Give readers and a folder for their sheets, `autograder read {unit} --readers anna,ben --to FOLDER`; or "
            f"filled sheets, `autograder read {unit} FOLDER/anna.csv FOLDER/ben.csv`."
        )
    root = class_folder(course_folder).resolve()
    if to:
        check_new_folder(to)
        people = class_list(root, roster, id_column).roster.in_section(section)
        students = None if section is None else {student.id for student in people.students}
        names = [name.strip() for name in readers.split(",")]
        files, counts = readings.share(root, unit, names, students, hide_names=hide_names)
        write_new_folder(to, files)
        print_lines(f"{reader}: {count} answers" for reader, count in counts.items())
        remark(f"Written: {relative_path(to.absolute())}, a sheet for each reader and {readings.QUESTIONS}.")
        return
    outcome = readings.record(root, unit, sheets or ())
    if sheets:
        print_lines([f"{unit}: {outcome.recorded} answers got points, {outcome.unchanged} had the same points before."])
    print_lines(
        f"Still without points: {count} answers of {reader or 'no reader'}."
        for reader, count in sorted(outcome.missing.items())
    )
    if outcome.recorded:
        remark(f"`autograder grade {unit}` puts points and comments on the feedback pages.")
    if outcome.not_recorded:
        remark("NOT RECORDED:")
        for message in outcome.not_recorded:
            remark(f"  {message}")
        raise typer.Exit(1)

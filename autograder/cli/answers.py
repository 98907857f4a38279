"""`autograder answers`: a class's answers as files, for a check for copied code, and which answers are equal."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from .console import check_new_folder, list_names, print_lines, relative_path, remark, write_new_folder
from .options import Course, IdColumn, RosterFile, Section, UnitName, class_folder, path_option


def answers(
    unit: UnitName,
    to: Annotated[Path, path_option("FOLDER", "A new or empty folder for the files.")],
    form: Annotated[
        Literal["files", "jplag", "csv"],
        typer.Option(
            "--format", help="A file for each answer, the folders that JPlag reads, or a table of the groups."
        ),
    ] = "files",
    tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Length from which equal answers are listed, in tokens.")
    ] = 60,
    share: Annotated[
        float,
        typer.Option(
            min=0, max=100, metavar="PERCENT", help="List no answer that more than this share of the class gave."
        ),
    ] = 10,
    roster: RosterFile = None,
    id_column: IdColumn = None,
    section: Section = None,
    course_folder: Course = None,
) -> None:
    """Write a class's answers to files, and list answers that are equal up to names, comments, layout and order."""
    from ..classroom import answers as of_class
    from ..classroom.assignment import assignment

    root = class_folder(course_folder)
    check_new_folder(to)
    work = assignment(unit, root, None, roster, id_column, section=section)
    found, unreadable = of_class.class_answers(work)
    groups = of_class.equal_answers(found, tokens, share)
    if form == "csv":
        files = of_class.as_table(groups)
    else:
        files = of_class.as_jplag(found, work) if form == "jplag" else of_class.as_files(found)
    write_new_folder(to, files)
    listed = [group for group in groups if group.remark == "compare"]
    print_lines(
        f"{group.exercise}: {list_names(group.students)} ({len(group.students)} of {group.answers} answers are equal, "
        f"{group.tokens} tokens)"
        for group in listed
    )
    remark(
        f"Written: {relative_path(to.absolute())}, {len(found)} answers. Groups of equal answers: {len(listed)}. Not "
        f"listed, because they have fewer than {tokens} tokens or more than {share:g} % of the class gave them: "
        f"{len(groups) - len(listed)}."
    )
    if form == "jplag":
        if left_out := [f"{answer.exercise} of {answer.students}" for answer in found if not answer.is_python]:
            remark(f"Left out, because it is not Python: {list_names(left_out)}.")
        folders = str(to / "submissions"), "-l", "python3", "-bc", str(to / "base_code")
        remark(f"Next: {shlex.join(['java', '-jar', 'jplag.jar', *folders])}")
    if unreadable:
        remark(f"NOT READABLE, and left out: {list_names(unreadable)}.")

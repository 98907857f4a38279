"""`autograder import`, `export` and `feedback-zip`: to and from Canvas and Moodle."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .. import course
from .console import (
    STANDARD_OUTPUT,
    Course,
    IdColumn,
    RosterFile,
    Section,
    UnitName,
    check_result,
    class_folder,
    fail,
    list_names,
    named,
    path_option,
    print_lines,
    reject_standard_output,
    relative_path,
    remark,
    write_result,
)

if TYPE_CHECKING:  # nbgrader takes seconds to import
    from ..gradebook.roster import Roster
    from ..lms.grade_tables import GradedClass, Table
    from ..lms.zip_files import Imported


def import_(
    unit: UnitName,
    zip_file: Annotated[
        Path,
        typer.Argument(parser=named, metavar="ZIP", help="The zip file of submissions from Canvas or Moodle."),
    ],
    roster: RosterFile = None,
    id_column: IdColumn = None,
    course_folder: Course = None,
) -> None:
    """Copy the submissions in a zip file from Canvas or Moodle to where `autograder grade` looks for them."""
    from ..course.submitted_files import ZipFile
    from ..gradebook.nbgrader_course import CourseProblem, course_directory, course_lock
    from ..gradebook.roster import class_list
    from ..lms.zip_files import import_zip

    course.unit(unit)
    root = class_folder(course_folder).resolve()
    try:
        if not root.is_dir():
            raise CourseProblem(f"The course folder {root} is not there.")
        people = class_list(root, roster, id_column).roster
        if not people.students:
            fail(
                "There is no roster, so the files cannot be matched with students: save the table that Canvas "
                f"or Moodle exports as {root}/roster.csv."
            )
        with ZipFile(zip_file) as file, course_lock(root):
            imported = import_zip(file, course_directory(root), root, unit, people)
    except OSError as error:
        fail(f"The submissions could not be written: {error}. Earlier files are kept; run the same command again.")
    for sentence in people.remarks:
        remark(sentence)
    print_lines(_summary(unit, people, imported))
    if imported.left_out:
        remark("NOT IMPORTED:")
        for name, why in imported.left_out.items():
            remark(f"  {name}: {why}.")
    if imported.left_out or people.left_out:
        raise typer.Exit(1)


def _summary(unit: str, people: "Roster", imported: "Imported") -> Iterator[str]:
    present = [*imported.new, *imported.replaced, *imported.unchanged]
    if imported.platform:
        yield f"The zip file is from {imported.platform}."
    yield (
        f"{unit}: {len(imported.new)} submissions are new, {len(imported.replaced)} replace another, "
        f"{len(imported.unchanged)} were already imported."
    )
    for student, path in imported.replaced.items():
        yield f"The earlier submission of {student} is kept in {relative_path(path)}."
    if imported.older:
        yield f"Not imported, because the zip file has a newer file of the same name: {list_names(imported.older)}."
    if without := [student.id for student in people.students if student.id not in present]:
        yield f"The zip file has no submission from: {list_names(without)}."
    if imported.late:
        yield f"Late, says Canvas: {list_names(imported.late)}."
    if present:
        yield (
            "The zip file does not contain submission times. So no times were written, and the gradebook deducts no "
            "late penalty."
        )


Format = Literal["csv", "canvas", "moodle"]


def export(
    units: Annotated[list[str], typer.Argument(help="The units, e.g. self_attention.")],
    form: Annotated[
        Format, typer.Option("--format", help="For a spreadsheet, Canvas's gradebook, or Moodle's grades.")
    ] = "csv",
    output: Annotated[
        Path | None, path_option("FILE", "The file to write; `-` for standard output, which is the default.")
    ] = None,
    assignment: Annotated[
        list[str] | None, typer.Option(help="UNIT=COLUMN: the column of the Canvas table for the unit's assignment.")
    ] = None,
    roster: RosterFile = None,
    id_column: IdColumn = None,
    section: Section = None,
    course_folder: Course = None,
) -> None:
    """Write the gradebook's grades as a table: one column an exercise and written question, or for Canvas or Moodle."""
    from ..gradebook.nbgrader_course import GRADEBOOK
    from ..gradebook.roster import ROSTER
    from ..gradebook.tables import as_csv
    from ..lms.grade_tables import graded_class

    place = output or STANDARD_OUTPUT
    root = class_folder(course_folder).resolve()
    assignments = _assignments(assignment or [], units)
    check_result(place, [roster or root / ROSTER, root / GRADEBOOK])
    grades = graded_class(root, list(dict.fromkeys(units)), roster, id_column, section)
    table = _table(form, grades, assignments)
    write_result(place, as_csv(table.rows).encode("utf-8", "replace"))
    for sentence in (*grades.roster.remarks, *table.remarks):
        remark(sentence)
    if place != STANDARD_OUTPUT:
        remark(f"Written: {relative_path(place.absolute())}, {len(grades.roster.students)} students.")
    if table.without:
        remark(f"NOT ON THE ROSTER, and left out: {list_names(table.without)}.")
    if table.without or grades.roster.left_out:
        raise typer.Exit(1)


def _assignments(options: list[str], units: list[str]) -> dict[str, str]:
    """Return the column that the options name for each unit."""
    columns = dict(option.partition("=")[::2] for option in options)
    for unit, column in columns.items():
        if unit not in units or not column:
            fail(
                f"`--assignment {unit}={column}` is not of the form UNIT=COLUMN, where UNIT is one of the "
                "exported units."
            )
    return columns


def _table(form: Format, grades: "GradedClass", assignments: dict[str, str]) -> "Table":
    from ..lms import grade_tables

    if form == "canvas":
        return grade_tables.for_canvas(grades, assignments)
    if assignments:
        fail("`--assignment` selects columns of Canvas: use it only with `--format canvas`.")
    return grade_tables.for_moodle(grades) if form == "moodle" else grade_tables.for_spreadsheet(grades)


def feedback_zip(
    unit: UnitName,
    output: Annotated[
        Path | None, path_option("FILE", "The file to write; COURSE/feedback/UNIT.zip if not given.")
    ] = None,
    course_folder: Course = None,
) -> None:
    """Pack the feedback pages for Canvas or Moodle, whichever the submissions were imported from."""
    from ..gradebook.class_gradebook import of_units
    from ..gradebook.nbgrader_course import course_directory
    from ..lms import zip_files
    from ..lms.zip_files import pack_feedback

    root = class_folder(course_folder).resolve()
    reject_standard_output(output, "Name a file.")
    if output:
        check_result(output)
    (of_unit,) = of_units(root, [unit])
    origins = zip_files.read_origins(root, unit)
    if not origins:
        fail(
            f"No submissions of {unit} were imported, so the names of their files in Canvas or Moodle are unknown. Run "
            f"`autograder import {unit} ZIP` first."
        )
    output = output or root / "feedback" / f"{unit}.zip"
    pages = pack_feedback(output, course_directory(root), of_unit, origins)
    if pages.packed:
        platforms = " and ".join(sorted({origins[student].platform for student in pages.packed}))
        print_lines([f"{len(pages.packed)} feedback pages for {platforms}: {relative_path(output.absolute())}"])
    if pages.outdated:
        names = list_names(pages.outdated)
        remark(
            "Out of date, because a person changed a score, or the due date passed, after the page was written: "
            f"{names}. Run `autograder grade {unit}` first."
        )
    if pages.without_page:
        remark(f"Without a feedback page: {list_names(pages.without_page)}. `autograder grade {unit}` writes it.")
    if pages.without_origin:
        remark(f"Not imported from Canvas or Moodle, and left out: {list_names(pages.without_origin)}.")
    if pages.without_page or pages.without_origin or pages.outdated:
        raise typer.Exit(1)

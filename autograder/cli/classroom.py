"""`autograder new-course`, `upgrade-course` and `report`: the commands around grading a class."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ..output_files import NotWritable
from .console import print_lines
from .options import Course, IdColumn, RosterFile, Section, UnitName, Units, class_folder, named, path_option
from .result_files import reject_standard_output


def new_course(
    place: Annotated[
        Path, typer.Argument(parser=named, metavar="DIR", help="The folder to make, which must be new or empty.")
    ],
    units: Units = None,
) -> None:
    """Make a folder for a class: its units, its settings for nbgrader, a roster to fill in, an exchange."""
    from ..classroom.class_folder import new_course as make

    names = make(place, units or ())
    print_lines(
        [
            f"{place}: {', '.join(names)}",
            f"List the students in {place / 'roster.csv'}. In {place / 'nbgrader_config.py'}, set Exchange.root to a "
            "folder that students' accounts can write to. "
            f"`make lab COURSE={shlex.quote(str(place))}` opens the course.",
        ]
    )


def upgrade_course(
    place: Annotated[Path, typer.Argument(parser=named, metavar="DIR", help="The class's folder.")],
    units: Annotated[
        list[str] | None, typer.Argument(metavar="[UNIT]...", help="The units; all units of the folder if not given.")
    ] = None,
) -> None:
    """Bring a class's units to this version of the kit, and add what its folder lacks; nothing graded is changed."""
    from ..classroom.class_folder import upgrade_course as upgrade
    from ..course.folder import use

    use(place)
    done = upgrade(place, units or ())
    lines = [f"{unit} is already graded, so its released version is kept." for unit in done.graded]
    if done.changed:
        lines.append(
            f"{place}: {', '.join(done.changed)} updated to this version of the autograder. Release it again if it was "
            "released."
        )
    print_lines(lines or [f"The units in {place} are up to date with this version of the autograder."])


def report(
    unit: UnitName,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Leave out everything that could identify a student.")
    ] = False,
    output: Annotated[
        Path | None,
        path_option("PATH", "A folder, or a file that ends in .html; COURSE/reports/UNIT/ if not given."),
    ] = None,
    roster: RosterFile = None,
    id_column: IdColumn = None,
    section: Section = None,
    course_folder: Course = None,
) -> None:
    """Write the class report: a page on how a class did in a unit, and the same as CSV and JSON."""
    from ..gradebook.roster import class_list
    from ..reports import class_report

    root = class_folder(course_folder).resolve()
    reject_standard_output(output, "Name a folder, or a file that ends in .html.")
    if output and output.is_symlink():
        raise NotWritable(f"{output} is a link. Give the name of the folder, or file, itself.")
    students = None
    if section is not None:
        students = {student.id for student in class_list(root, roster, id_column).roster.in_section(section).students}
    page = output or class_report.report_folder(root, unit, section)
    if page.suffix != class_report.PAGE:
        page = class_report.page_path(page, is_anonymous=anonymous)
    class_report.check(page)
    report = class_report.compose(root, unit, is_anonymous=anonymous, section=section, students=students)
    print_lines(class_report.write(report, page))

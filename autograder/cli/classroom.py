"""The commands around grading a class.

These are `new-course`, `upgrade-course`, `extend`, `reweight`, `report`, `answers` and `read`.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from .. import course
from ..output_files import NotWritable
from .console import (
    Course,
    IdColumn,
    RosterFile,
    Section,
    UnitName,
    Units,
    check_new_folder,
    class_folder,
    fail,
    list_names,
    named,
    path_option,
    print_lines,
    reject_standard_output,
    relative_path,
    remark,
    write_new_folder,
)


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
    from ..course.settings import use

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
    from ..gradebook.lateness import Extensions, exactly

    course.unit(unit, root)
    extensions = Extensions(root, unit, roster, id_column)
    names = list(dict.fromkeys([*names, *(extensions.members(group) if group else ())]))
    if list_all:
        lines = [f"{student}  {extensions.due(its)}  {exactly(its)}" for student, its in extensions.given.items()]
        print_lines([f"{unit}: due {extensions.due()}, extensions: {len(lines)}", *lines])
        return
    if remove:
        if without := [student for student in names if student not in extensions.given]:
            fail(
                f"Without an extension in {unit}: {list_names(without)}. None was removed. "
                f"`autograder extend {unit} --list` prints all extensions."
            )
        extensions.put(dict.fromkeys(names))
        lines = [f"{student}  {extensions.due()}" for student in names]
    else:
        requests = dict(_requests(csv_file)) if csv_file else dict.fromkeys(names, (until, by))
        extensions.refuse_unknown(requests)
        new = {student: extensions.extension(student, *request) for student, request in requests.items()}
        extensions.put(new)
        lines = []
        for student, its in new.items():
            before = extensions.given.get(student)
            replaced = f"  (before: {exactly(before)})" if before and before != its else ""
            lines.append(f"{student}  {extensions.due(its)}  {exactly(its)}{replaced}")
    print_lines(lines)
    remark(f"`autograder grade {unit}` updates penalties and feedback pages.")


def _requests(path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the students of a table, each with the texts in the columns until and by."""
    from ..gradebook.tables import read_csv

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
        yield row["student"], (row.get("until", ""), row.get("by", ""))


def reweight(
    unit: UnitName,
    exercise: Annotated[
        str, typer.Argument(metavar="[EXERCISE]", help="The exercise: the name of its function or class.")
    ] = "",
    points: Annotated[
        float | None, typer.Option(metavar="POINTS", help="Scale everyone's points to this maximum.")
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Count the exercise neither in anyone's points nor in the maximum.")
    ] = False,
    give_full: Annotated[
        bool, typer.Option("--give-full", help="Give the exercise's full points to everyone who submitted the unit.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Return to the points with which the exercise was released.")
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="Print the unit's changes, and change nothing.")] = False,
    course_folder: Course = None,
) -> None:
    """Change the points of an exercise for a whole class. The next `grade` applies it; --dry-run shows it first."""
    root = class_folder(course_folder).resolve()
    kinds = {"points": points is not None, "drop": drop, "give_full": give_full, "undo": undo}
    if sum(kinds.values()) + list_all != 1 or bool(exercise) == list_all:
        fail(
            f"Give an exercise and one of --points, --drop, --give-full and --undo: `autograder reweight {unit} "
            f"EXERCISE --points 2`; or `autograder reweight {unit} --list`."
        )
    from ..gradebook.reweights import Reweighting

    reweighting = Reweighting(root, course.unit(unit, root))
    if list_all:
        lines = list(reweighting.log())
        print_lines([f"{unit}: changes of points: {len(lines)}", *lines])
        return
    kind = next(kind for kind, is_given in kinds.items() if is_given)
    rule = reweighting.put(exercise, kind, points)
    released = reweighting.unit.exercise(exercise).points
    of_pages = f"Pages will say: {rule.sentence(exercise)}" if rule else ""
    print_lines([of_pages or f"{exercise} is worth its released {released:g} points again."])
    remark(f"`autograder grade {unit} --dry-run` shows whose points change; `autograder grade {unit}` changes them.")


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
        print_lines([f"{unit}: points recorded: {outcome.recorded}; the same points as before: {outcome.unchanged}."])
    print_lines(
        f"Answers still without points, {reader or 'without a reader'}: {count}."
        for reader, count in sorted(outcome.missing.items())
    )
    if outcome.recorded:
        remark(f"`autograder grade {unit}` puts points and comments on the feedback pages.")
    if outcome.not_recorded:
        remark("NOT RECORDED:")
        for message in outcome.not_recorded:
            remark(f"  {message}")
        raise typer.Exit(1)

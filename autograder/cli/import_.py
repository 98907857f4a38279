"""`autograder import`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import course
from .paths import named
from .roster import Course, IdColumn, RosterFile, class_folder
from .saying import console, refuse, remark, results, short, shown, some

if TYPE_CHECKING:  # nbgrader takes seconds to import
    from ..gradebook.roster import Roster
    from ..lms.import_submissions import Imported


def import_(
    unit: Annotated[str, typer.Argument(help="The unit, e.g. self_attention.")],
    zip_file: Annotated[
        Path,
        typer.Argument(parser=named, metavar="ZIP", help="The submissions, as Canvas or Moodle packs them."),
    ],
    roster: RosterFile = None,
    id_column: IdColumn = None,
    course_folder: Course = None,
) -> None:
    """Put the submissions in a zip file of Canvas's or Moodle's where `autograder grade` looks for them."""
    from ..classroom.one_run import one_run
    from ..gradebook.class_list import class_list
    from ..gradebook.course_directory import CourseProblem, course_directory
    from ..gradebook.roster import BadRoster
    from ..lms.import_submissions import BadRecord, import_zip
    from ..submitted.zip_file import BadZip, ZipFile

    try:
        course.unit(unit)
        root = class_folder(course_folder).resolve()
        if not root.is_dir():
            raise CourseProblem(f"The course folder {root} is not there.")
        people = class_list(root, roster, id_column).roster
        if not people.students:
            refuse(f"There is no roster to join the files to: save what Canvas or Moodle exports as {root}/roster.csv.")
        with ZipFile(zip_file) as file, one_run(root):
            done = import_zip(file, course_directory(root), root, unit, people)
    except (course.UnknownUnit, BadRoster, CourseProblem, BadZip, BadRecord) as reason:
        refuse(reason)
    except OSError as error:
        refuse(f"The submissions could not be written: {error}. What was there is kept; run the same command again.")
    for sentence in people.remarks:
        remark(sentence)
    with results():
        for line in _results(unit, people, done):
            console.print(shown(line), highlight=False, soft_wrap=True)
    if done.left_out:
        remark("NOT IMPORTED:")
        for name, why in done.left_out.items():
            remark(f"  {name}: {why}.")
    if done.left_out or people.left_out:
        raise typer.Exit(1)


def _results(unit: str, people: "Roster", done: "Imported") -> Iterator[str]:
    there = [*done.new, *done.replaced, *done.unchanged]
    if done.platform:
        yield f"The zip file is {done.platform}'s."
    yield (
        f"{unit}: {len(done.new)} submissions are new, {len(done.replaced)} replace another, "
        f"{len(done.unchanged)} were there already."
    )
    for student, kept in done.replaced.items():
        yield f"What {student} handed in before is kept in {short(kept)}."
    if done.older:
        yield f"Older than another of the same name, and not imported: {some(done.older)}."
    if without := [student.id for student in people.students if student.id not in there]:
        yield f"Nothing in the zip file from: {some(without)}."
    if done.late:
        yield f"Late, says Canvas: {some(done.late)}."
    if there:
        yield (
            "A zip file does not say when something was handed in: no times were written, so the gradebook gives no "
            "penalty for lateness."
        )

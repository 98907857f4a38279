"""`autograder feedback-zip`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import course
from ..output_files import NotWritable
from . import paths
from .roster import Course, class_folder
from .saying import console, refuse, remark, results, short, shown, some


def feedback_zip(
    unit: Annotated[str, typer.Argument(help="The unit, e.g. self_attention.")],
    output: Annotated[
        Path | None,
        typer.Option(
            parser=paths.named, metavar="FILE", help="The file to write; COURSE/feedback/UNIT.zip if not given."
        ),
    ] = None,
    course_folder: Course = None,
) -> None:
    """Pack the feedback pages for Canvas or Moodle, whichever the submissions were imported from."""
    from ..gradebook import marks
    from ..gradebook.course_directory import CourseProblem, course_directory
    from ..lms import import_submissions
    from ..lms.feedback_zip import pack

    try:
        root = class_folder(course_folder).resolve()
        paths.refuse_standard_output(output, "Name a file.")
        if output:
            paths.check(output)
        (of_unit,) = marks.of_units(root, [unit])
        origins = import_submissions.read_origins(root, unit)
        if not origins:
            refuse(
                f"No submissions of {unit} were imported, so Canvas's or Moodle's names for them are not known: "
                f"`autograder import {unit} ZIP` comes first."
            )
        output = output or root / "feedback" / f"{unit}.zip"
        done = pack(output, course_directory(root), of_unit, origins)
    except (course.UnknownUnit, marks.NoMarks, CourseProblem, import_submissions.BadRecord, NotWritable) as reason:
        refuse(reason)
    if done.packed:
        with results():
            platforms = " and ".join(sorted({origins[student].platform for student in done.packed}))
            line = f"{len(done.packed)} feedback pages for {platforms}: {short(output.absolute())}"
            console.print(shown(line), highlight=False, soft_wrap=True)
    if done.outdated:
        remark(
            f"Marked by a person since the page was written: {some(done.outdated)}. `autograder grade {unit}` first."
        )
    if done.without_page:
        remark(f"Without a feedback page: {some(done.without_page)}. `autograder grade {unit}` writes it.")
    if done.without_origin:
        remark(f"Not imported from Canvas or Moodle, and left out: {some(done.without_origin)}.")
    if done.without_page or done.without_origin or done.outdated:
        raise typer.Exit(1)

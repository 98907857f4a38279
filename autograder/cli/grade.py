"""`autograder grade`."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from .. import course
from ..classroom import processors
from ..client.requests import Device
from ..course import digests
from ..course.settings import BadSettings
from ..reports.json_output import json_line
from .cluster import PlainTcp, Scheduler, marking_at
from .isolation import Require, Trust, asked
from .paths import named
from .roster import Course, IdColumn, RosterFile, class_folder
from .saying import aside, console, refuse, remark, results, short, shown, some

if TYPE_CHECKING:  # nbgrader takes seconds to import, and `autograder mark` and `--help` do not need it
    from ..classroom.assignment import Assignment
    from ..classroom.grade import ClassResult
    from ..classroom.preview import Preview


def _print_schema(asked: bool) -> None:
    if asked:
        from ..reports.json_output import json_schema
        from .class_lines import StudentLine

        typer.echo(json_schema(StudentLine), nl=False)
        raise typer.Exit


def grade(
    unit: Annotated[str, typer.Argument(help="The unit, e.g. self_attention.")],
    submitted: Annotated[
        Path | None,
        typer.Option(
            parser=named,
            metavar="DIR",
            help="Submissions, as STUDENT/UNIT/UNIT.ipynb; COURSE/submitted if not given.",
        ),
    ] = None,
    roster: RosterFile = None,
    id_column: IdColumn = None,
    markers: Annotated[
        int, typer.Option("--markers", "--workers", min=1, help="Marking processes side by side.")
    ] = processors.count(),
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say whose marks would change.")] = False,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Mark everyone again, even what is already graded.")
    ] = False,
    course_folder: Course = None,
    require_isolation: Require = None,
    trust_submissions: Trust = False,
    scheduler: Scheduler = None,
    plain_tcp: PlainTcp = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a student, and no table.")] = False,
    schema: Annotated[
        bool,
        typer.Option("--schema", is_eager=True, callback=_print_schema, help="Print the JSON Schema of such a line."),
    ] = False,
) -> None:
    """Grade a class: into the gradebook, with a table here and a feedback page for everyone.

    Exit code 1: the run is complete, but something was not graded or recorded. 2: nothing could be done, or the run
    ended early.
    """
    from ..classroom.assignment import NothingToGrade, assignment
    from ..classroom.grade import grade as grade_class
    from ..classroom.preview import preview
    from ..client.marker import MarkerRefused, MarkerStopped
    from ..gradebook.course_directory import CourseProblem
    from ..gradebook.roster import BadRoster

    try:
        root = class_folder(course_folder)
        settings = asked(require_isolation, trust_submissions)
        marking = marking_at(scheduler, plain_tcp=plain_tcp)
        work = assignment(unit, root, submitted, roster, id_column)
        if dry_run:
            expected = preview(
                work, device=device, settings=settings, markers=markers, regrade=regrade, marking=marking
            )
            _print_changes(unit, expected, as_json=as_json)
            for sentence in _remarks(work, graded="would be graded"):
                remark(sentence)
            for one in work.refused:
                remark(f"NOT GRADED: {one.name}: {one.reason}")
            for row in expected.rows:
                if row.problem:
                    remark(f"WOULD NOT BE RECORDED: {row.student}: {row.problem}")
            return
        with Progress(console=aside, transient=True, disable=not aside.is_terminal) as progress:
            task = progress.add_task(f"starting to grade {unit}", total=None)
            result = grade_class(
                work,
                device=device,
                settings=settings,
                markers=markers,
                regrade=regrade,
                marking=marking,
                on_start=lambda total: progress.update(task, total=total, description=unit),
                on_row=lambda row: progress.advance(task),
            )
    except (course.UnknownUnit, course.UnusableUnit, BadSettings, NothingToGrade, BadRoster, CourseProblem) as reason:
        refuse(reason)
    except (MarkerRefused, MarkerStopped) as reason:
        refuse(reason)
    except KeyboardInterrupt:
        kept = (
            "" if dry_run else " What was graded so far is in the gradebook; run the same command again for the rest."
        )
        refuse(f"Interrupted.{kept}")
    of_class = ["--course", str(course_folder)] if course_folder else []
    class_report = shlex.join(["autograder", "report", unit, *of_class])
    _print_class(work, result, class_report, as_json=as_json)
    for sentence in _remarks(work):
        remark(sentence)
    if (
        work.refused
        or work.listed.left_out
        or any(row.problem or row.report.status == "grader_error" for row in result.rows)
    ):
        raise typer.Exit(1)


def _print_class(work: "Assignment", result: "ClassResult", class_report: str, *, as_json: bool) -> None:
    """The class as JSON lines; else as a table, or without boxes where nobody looks on, and what else came of it."""
    from .class_lines import class_lines
    from .class_table import class_in_lines, class_table

    about = work.unit, work.root, result
    with results():
        if as_json:
            for line in class_lines(work.unit, result):
                sys.stdout.buffer.write(json_line(line))
            return
        for text in [class_table(*about)] if console.is_terminal else class_in_lines(*about):
            console.print(text, highlight=False, soft_wrap=not console.is_terminal)
        for sentence in _closing(result, class_report):
            console.print(shown(sentence), highlight=False, soft_wrap=True)


def _closing(result: "ClassResult", class_report: str) -> Iterator[str]:
    """What is said of the class as a whole."""
    if result.conditions:
        yield f"Isolation {result.conditions.isolation}: {', '.join(result.conditions.enforced)}."
    if alone := sum(not row.is_new and not row.updates for row in result.rows):
        yield f"Unchanged since they were graded, and left alone: {alone}. `--regrade` marks them again."
    if updated := sum(bool(row.updates) for row in result.rows):
        yield f"Late penalty or roster entry changed, without grading again: {updated}."
    if result.waiting:
        yield f"Answers for a person to read, in formgrader: {result.waiting}. Until then they count 0."
    file = result.gradebook.file
    yield f"Gradebook: {short(file) if file else result.gradebook}"
    yield f"Feedback pages: {short(result.pages)}"
    yield f"Class report: {class_report}"


def _print_changes(unit: str, expected: "Preview", *, as_json: bool) -> None:
    """The changes that a run would make: as JSON lines, as a table, or without boxes."""
    from .class_table import changes_in_lines, changes_table, run_in_a_sentence

    changes = expected.changes
    with results():
        if as_json:
            for change in changes:
                sys.stdout.buffer.write(json_line(change))
            return
        if changes and console.is_terminal:
            console.print(changes_table(unit, changes))
        else:
            for text in changes_in_lines(unit, changes):
                console.print(text, highlight=False, soft_wrap=True)
        console.print(run_in_a_sentence(expected), highlight=False, soft_wrap=True)


def _remarks(work: "Assignment", *, graded: str = "graded") -> Iterator[str]:
    """What an instructor has to know about who is in the class and what was handed in."""
    yield from work.listed.remarks
    upgrade = shlex.join(["autograder", "upgrade-course", short(work.root), work.unit.name])
    if work.passed_over:
        yield (
            f"NOT LOOKED AT in {short(work.submitted)}: {some(work.passed_over)}. "
            "A submission is STUDENT/UNIT/UNIT.ipynb; put it there, or take it out."
        )
    if work.not_on_roster:
        yield f"NOT ON THE ROSTER, and {graded} all the same: {some(work.not_on_roster)}."
    if not digests.is_current(work.unit.name, work.root):
        yield (
            f"{short(work.root / 'source')} keeps {work.unit.name} as it was given out, and this version of the kit "
            f"has another: marked are the exercises that the folder has, at its points. `{upgrade}` brings the new "
            "one, as long as nothing of it is graded."
        )
    if not (work.root / "nbgrader_config.py").is_file():
        yield (
            f"There is no {short(work.root / 'nbgrader_config.py')}: nbgrader's own commands, and formgrader, would "
            f"run submissions there without isolation. `{upgrade}` gives it one."
        )

"""The command `autograder grade`."""

import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

from ..course import content
from ..pool import grading_pool
from ..pool.requests import Device
from ..reports.exports import json_line
from .console import console, fail, list_names, print_lines, relative_path, remark, results, to_stderr
from .options import (
    Course,
    IdColumn,
    PlainTcp,
    Require,
    RosterFile,
    Scheduler,
    Section,
    Trust,
    UnitName,
    batch_grading_at,
    class_folder,
    isolation_settings,
    path_option,
    schema_option,
)

if TYPE_CHECKING:  # nbgrader takes seconds to import, and `autograder mark` and `--help` do not need it
    from ..classroom.assignment import Assignment
    from ..classroom.grade import ClassResult, Preview


def grade(
    unit: UnitName,
    submitted: Annotated[
        Path | None,
        path_option("DIR", "Submissions, as STUDENT/UNIT/UNIT.ipynb; COURSE/submitted if not given."),
    ] = None,
    roster: RosterFile = None,
    id_column: IdColumn = None,
    section: Section = None,
    process_count: Annotated[
        int,
        typer.Option(
            "--markers", "--workers", min=1, show_default="one a processor", help="The number of grading processes."
        ),
    ] = grading_pool.processor_count(),
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; list the grades that would change.")
    ] = False,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Grade all submissions again, even those that are already graded.")
    ] = False,
    repair: Annotated[
        bool,
        typer.Option("--repair/--no-repair", help="After grading, search for changes that repair unexplained answers."),
    ] = True,
    course_folder: Course = None,
    require_isolation: Require = None,
    trust_submissions: Trust = False,
    scheduler: Scheduler = None,
    plain_tcp: PlainTcp = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each student, and no table.")
    ] = False,
    schema: Annotated[bool, schema_option("cli.class_results", "StudentLine", "a line of JSON")] = False,
) -> None:
    """Grade a class: into the gradebook, with a table here and a feedback page for everyone.

    Exit code 1: the run is complete, but something was not graded or recorded. 2: nothing could be done, or the run
    ended early.
    """
    from ..classroom.assignment import assignment
    from ..classroom.grade import grade as grade_class
    from ..classroom.grade import preview

    root = class_folder(course_folder)
    options: dict[str, Any] = {
        "device": device,
        "settings": isolation_settings(require_isolation, trust_submissions),
        "process_count": process_count,
        "regrade": regrade,
        "repair": repair and scheduler is None,  # on a cluster, repairs are not searched
        "new_batch": batch_grading_at(scheduler, plain_tcp=plain_tcp),
    }
    hint = "" if dry_run else " The gradebook has the grades so far; run the same command again for the rest."
    try:
        work = assignment(unit, root, submitted, roster, id_column, section=section)
        if dry_run:
            _print_preview(work, preview(work, **options), as_json=as_json)
            return
        with Progress(console=to_stderr, transient=True, disable=not to_stderr.is_terminal) as progress:
            task = progress.add_task(f"starting to grade {unit}", total=None)
            result = grade_class(
                work,
                **options,
                on_start=lambda total, what: progress.update(task, total=total, completed=0, description=what),
                on_step=lambda: progress.advance(task),
            )
    except KeyboardInterrupt:
        fail(f"Interrupted.{hint}")
    of_class = ["--course", str(course_folder)] if course_folder else []
    of_section = ["--section", section] if section is not None else []
    _print_class(work, result, shlex.join(["autograder", "report", unit, *of_section, *of_class]), as_json=as_json)
    for sentence in _remarks(work):
        remark(sentence)
    has_problem = any(row.problem or row.report.status == "grader_error" for row in result.rows)
    if work.refused or work.listed.left_out or has_problem:
        raise typer.Exit(1)


def _print_class(work: "Assignment", result: "ClassResult", class_report: str, *, as_json: bool) -> None:
    """Print the class as JSON lines; else as a table, or without boxes if stdout is no terminal, and a summary."""
    from .class_results import class_in_lines, class_lines, class_table

    with results():
        if as_json:
            _print_json(class_lines(work.unit, result))
            return
        for text in [class_table(work.unit, result)] if console.is_terminal else class_in_lines(work.unit, result):
            console.print(text, highlight=False, soft_wrap=not console.is_terminal)
    print_lines(_summary(result, class_report))


def _summary(result: "ClassResult", class_report: str) -> Iterator[str]:
    if result.conditions:
        yield f"Isolation {result.conditions.isolation}: {', '.join(result.conditions.enforced)}."
    if unchanged := sum(not row.is_new and not row.updates for row in result.rows):
        yield (
            f"Not graded again, because unchanged since their last grading: {unchanged}. `--regrade` grades them again."
        )
    if updated := sum(bool(row.updates) for row in result.rows):
        yield f"Points, late penalty or roster entry changed, without grading again: {updated}."
    if waiting := result.grades.waiting:
        yield f"Answers for a person to read, in formgrader: {waiting}. Until then they count 0."
    for unit, students in result.outdated.items():
        yield (
            f"LATE DAYS or points changed penalties in {unit}: {list_names(students)}. `autograder grade {unit}` "
            "records the new penalties."
        )
    file = result.gradebook.file
    yield f"Gradebook: {relative_path(file) if file else result.gradebook}"
    yield f"Feedback pages: {relative_path(result.pages)}"
    yield f"Class report: {class_report}"


def _print_preview(work: "Assignment", expected: "Preview", *, as_json: bool) -> None:
    """Print the changes that a run would make, a line or a JSON object for each."""
    from .class_results import changes_in_lines, describe_run

    if as_json:
        with results():
            _print_json(expected.changes)
    else:
        print_lines([*changes_in_lines(work.unit.name, expected.changes), describe_run(expected)])
    for sentence in _remarks(work, graded="would be graded"):
        remark(sentence)
    for one in work.refused:
        remark(f"NOT GRADED: {one.name}: {one.reason}")
    for row in expected.rows:
        if row.problem:
            remark(f"WOULD NOT BE RECORDED: {row.student}: {row.problem}")


def _print_json(lines: Iterable[object]) -> None:
    for line in lines:
        sys.stdout.buffer.write(json_line(line))


def _remarks(work: "Assignment", *, graded: str = "graded") -> Iterator[str]:
    """Yield what an instructor has to know about the class list and the submitted files."""
    yield from work.listed.remarks
    upgrade = shlex.join(["autograder", "upgrade-course", relative_path(work.root), work.unit.name])
    if work.passed_over:
        yield (
            f"IGNORED in {relative_path(work.submitted)}: {list_names(work.passed_over)}. "
            "A submission must be at STUDENT/UNIT/UNIT.ipynb; move these files there, or delete them."
        )
    with_notebook = {submission.student for submission in work.submissions if submission.notebook is not None}
    if strangers := [student for student in work.not_on_roster if student in with_notebook]:
        yield f"NOT ON THE ROSTER, but {graded} all the same: {list_names(strangers)}."
    if without := [student for student in work.not_on_roster if student not in with_notebook]:
        yield f"NOT ON THE ROSTER, with a folder but no notebook: {list_names(without)}."
    if not content.is_current(work.unit.name, work.root):
        yield (
            f"{relative_path(work.root / 'source')} has another version of {work.unit.name} than the autograder. "
            f"The exercises of the folder's version are graded, with that version's points. `{upgrade}` updates the "
            "folder, as long as no submission of the unit is graded."
        )
    if not (work.root / "nbgrader_config.py").is_file():
        yield (
            f"There is no {relative_path(work.root / 'nbgrader_config.py')}: nbgrader's own commands, and formgrader, "
            f"would run submissions there without isolation. `{upgrade}` writes this file."
        )

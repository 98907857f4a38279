"""`autograder grade` and `autograder mark`: grade a class into its gradebook, or notebooks anywhere without one."""

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace
from rich.progress import Progress

from .. import course
from ..course import content
from ..course.notebook_file import read_at
from ..course.settings import Settings
from ..pool import grading_pool
from ..pool.grading_pool import GradingPool, GradingProcess
from ..pool.requests import Device, GradeNotebook
from ..report import Report, ungraded_report
from ..reports.exports import Visibility, json_line
from .console import (
    OUR_FAULT,
    TOO_LOW,
    Course,
    IdColumn,
    PlainTcp,
    Require,
    ResultFiles,
    RosterFile,
    Scheduler,
    Section,
    Trust,
    UnitName,
    batch_grading_at,
    class_folder,
    console,
    fail,
    isolation_settings,
    list_names,
    named,
    path_option,
    print_lines,
    relative_path,
    remark,
    results,
    schema_option,
    to_stderr,
)

if TYPE_CHECKING:  # nbgrader takes seconds to import, and `mark` and `--help` do not need it
    from ..classroom.assignment import Assignment
    from ..classroom.grade import ClassResult, Preview

_TRIES = 2
"""Maximum number of grading processes for one file: something else than the file may have ended the first."""


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
    """Grade a class: into the gradebook, with a table here and a page for each who submitted.

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


def mark(
    notebooks: Annotated[
        list[Path], typer.Argument(parser=named, metavar="NOTEBOOK", help="Notebook files, under any name.")
    ],
    junit: Annotated[
        Path | None, typer.Option(parser=named, metavar="FILE", help="Write JUnit XML, for CI systems.")
    ] = None,
    gradescope: Annotated[
        Path | None,
        typer.Option(parser=named, metavar="FILE", help="Write Gradescope's results.json, for one notebook."),
    ] = None,
    hidden_visibility: Annotated[
        Visibility, typer.Option(help="Who sees the results of hidden tests on Gradescope.")
    ] = "visible",
    fail_under: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            min=0,
            max=100,
            help="Exit with code 3 if a notebook gets less than PERCENT of the points.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only problems.")] = False,
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    repair: Annotated[
        bool, typer.Option("--repair/--no-repair", help="Search for the change that repairs an unexplained answer.")
    ] = True,
    require_isolation: Require = None,
    trust_submissions: Trust = False,
    schema: Annotated[bool, schema_option("report", "Report", "a line")] = False,
) -> None:
    """Grade notebook files without a gradebook: one JSON object a line on stdout.

    Exit code 1: a file could not be read, or a grader of ours failed. 2: nothing could be done, or the run ended early.
    3: see --fail-under.
    """
    if not course.unit_names():
        fail("Nothing is built yet: run `autograder build` first.")
    files = ResultFiles(junit, gradescope, hidden_visibility, quiet)
    done: list[Report] = []
    files.check(notebooks)
    settings = isolation_settings(require_isolation, trust_submissions)
    for report in _reports(notebooks, device, settings, repair=repair):
        done.append(replace(report, cells=[]))  # result files leave out what cells printed
        if not quiet:
            with results():
                sys.stdout.buffer.write(json_line(report))
            if to_stderr.is_terminal and len(notebooks) > 1:
                remark(f"{len(done)} of {len(notebooks)}: {notebooks[len(done) - 1]}")
    files.write(done)
    if code := exit_code(done, fail_under):
        raise typer.Exit(code)


def exit_code(reports: Sequence[Report], fail_under: float | None) -> int:
    """Print what is wrong, and return the exit status. A file without a result decides it before a low grade."""
    code = 0
    for report in reports:
        if report.is_result and fail_under is not None and _percent(report) < fail_under:
            remark(f"{report.notebook}: {_percent(report):g} % of the points, less than {fail_under:g}.")
            code = code or TOO_LOW
    for report in reports:
        if not report.is_result:
            remark(
                f"{report.notebook}: "
                f"{report.message or 'A hidden test crashed, which is our fault. The report says where.'}"
            )
            code = OUR_FAULT
    return code


def _percent(report: Report) -> float:
    """Return the rounded percentage of the points, so that nine tenths are 90."""
    return round(100 * report.score / report.max_score, 6) if report.max_score else 0.0


def _reports(notebooks: Sequence[Path], device: Device, settings: Settings, *, repair: bool) -> Iterator[Report]:
    """Yield a report on each file, by a grading process that ends with this command.

    Raises GradingRefused, and GradingStopped if no process starts.
    """
    private = sorted({Path(os.path.realpath(notebook)).parent for notebook in notebooks})  # even of a link to itself
    unit = _first_unit(notebooks)
    with GradingPool(lambda number: GradingProcess(device, settings, private=private, unit=unit)) as pool:
        ready = pool.ready()
        for notebook in notebooks:
            file = read_at(notebook)
            submission = GradeNotebook(str(notebook), file.content, digest=file.digest)
            if file.is_read:
                report = pool.grade(submission, tries=_TRIES)
                yield pool.repair(submission, report) if repair else report
            else:
                yield ungraded_report(submission.name, "unreadable", str(file.content), ready)


def _first_unit(notebooks: Sequence[Path]) -> str:
    """Return the unit that the first file's name suggests, to prepare for it; empty if it suggests none."""
    name = notebooks[0].stem
    return name if name in course.unit_names() else ""

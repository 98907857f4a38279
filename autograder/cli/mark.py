"""The command `autograder mark`."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from .. import course
from ..course.notebook_file import read_at
from ..course.settings import Settings
from ..pool.grading_pool import GradingPool, GradingProcess
from ..pool.requests import Device, GradeNotebook
from ..report import Report, ungraded_report
from ..reports.exports import Visibility, json_line
from .console import OUR_FAULT, TOO_LOW, ResultFiles, fail, remark, results, to_stderr
from .options import Require, Trust, isolation_settings, named, schema_option

_TRIES = 2
"""Maximum number of grading processes for one file: something else than the file may have ended the first."""


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

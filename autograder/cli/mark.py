"""`autograder mark`."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from .. import course
from ..client.marker import Marker, MarkerRefused, MarkerStopped, stopped_at
from ..client.requests import Device
from ..client.served import NotServed, served
from ..course.settings import BadSettings, Settings
from ..output_files import NotWritable
from ..report import Report
from ..reports.exports import Visibility
from ..reports.json_output import json_line
from .console import OUR_FAULT, TOO_LOW, fail, remark, results, to_stderr
from .options import Require, Trust, isolation_settings, named
from .result_files import ResultFiles

_TRIES = 2
"""Per file, if the marking process ends while marking it: something else may have ended it."""


def _print_schema(asked: bool) -> None:
    if asked:
        from ..reports.json_output import json_schema

        typer.echo(json_schema(Report), nl=False)
        raise typer.Exit


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
        Visibility, typer.Option(help="Who sees on Gradescope what comes of hidden graders.")
    ] = "visible",
    fail_under: Annotated[
        float | None,
        typer.Option(metavar="PERCENT", min=0, max=100, help="Exit with code 3 if a notebook has less of its points."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but what is wrong.")] = False,
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    require_isolation: Require = None,
    trust_submissions: Trust = False,
    schema: Annotated[
        bool,
        typer.Option("--schema", is_eager=True, callback=_print_schema, help="Print the JSON Schema of a line."),
    ] = False,
) -> None:
    """Mark notebook files, without a gradebook: one JSON object a line on stdout.

    Exit code 1: a file could not be read, or a grader of ours failed. 2: nothing could be done, or the run ended early.
    3: see --fail-under.
    """
    if not course.unit_names():
        fail("Nothing is built yet: run `autograder build` first.")
    files = ResultFiles(junit, gradescope, hidden_visibility, quiet)
    done: list[Report] = []
    try:
        files.check(notebooks)
        settings = isolation_settings(require_isolation, trust_submissions)
        for report in _reports(notebooks, device, settings):
            done.append(replace(report, cells=[]))  # no file says what cells printed, which may be much
            if not quiet:
                with results():
                    sys.stdout.buffer.write(json_line(report))
                if to_stderr.is_terminal and len(notebooks) > 1:
                    remark(f"{len(done)} of {len(notebooks)}: {notebooks[len(done) - 1]}")
        files.write(done)
    except (NotWritable, BadSettings, MarkerRefused, MarkerStopped) as reason:
        fail(reason)
    if code := _exit_code(done, fail_under):
        raise typer.Exit(code)


def _exit_code(reports: Sequence[Report], fail_under: float | None) -> int:
    """Says what is wrong, and returns the code for it; what is no result counts before what is too low."""
    code = 0
    for report in reports:
        if report.is_result and fail_under is not None and _percent(report) < fail_under:
            remark(f"{report.notebook}: {_percent(report):g} % of the points, less than {fail_under:g}.")
            code = code or TOO_LOW
    for report in reports:
        if not report.is_result:
            remark(f"{report.notebook}: {report.message or 'A grader of ours failed: its report says where.'}")
            code = OUR_FAULT
    return code


def _percent(report: Report) -> float:
    """Rounded, so that nine tenths of the points are 90."""
    return round(100 * report.score / report.max_score, 6) if report.max_score else 0.0


def _reports(notebooks: Sequence[Path], device: Device, settings: Settings) -> Iterator[Report]:
    """A report on each, by a `serve` that runs and marks as this would, else by a marking process of its own.

    A process that ends is replaced. Raises MarkerRefused, and MarkerStopped if none starts.
    """
    private = sorted({Path(os.path.realpath(notebook)).parent for notebook in notebooks})  # even of a link to itself
    started = partial(Marker, device, settings, private=private, unit=_first_unit(notebooks))
    left = list(notebooks)
    if (serve := served(device, settings, private)) is not None:
        with contextlib.suppress(NotServed):  # it has ended meanwhile
            while left:
                yield serve.mark_file(left[0])
                del left[0]
    if not left:
        return
    marker = started()
    try:
        ready = marker.ready
        for notebook in left:
            for _ in range(_TRIES):
                try:
                    report = marker.mark_file(notebook)
                    break
                except MarkerStopped as stopped:
                    report = stopped_at(str(notebook), stopped, ready)
                    marker.close()
                    marker = started()
            yield report
    finally:
        marker.close()


def _first_unit(notebooks: Sequence[Path]) -> str:
    """The unit of the first notebook, as its file's name has it; what is in it tells, but is read by the marker."""
    first = notebooks[0].stem
    return first if first in course.unit_names() else ""

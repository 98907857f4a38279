"""`autograder mark`."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from .. import course
from ..client.marker import Marker, MarkerRefused, MarkerStopped, stopped_at
from ..client.requests import Device
from ..course.settings import BadSettings, Settings
from ..report import Report
from .isolation import Require, Trust, asked
from .saying import OUR_FAULT, aside, json_line, refuse, remark, results

_TRIES = 2
"""Per file, if the marking process ends while marking it: something else may have ended it."""


def mark(
    notebooks: Annotated[list[Path], typer.Argument(help="Notebook files, under any name.")],
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    require_isolation: Require = None,
    trust_submissions: Trust = False,
) -> None:
    """Mark notebook files, without a gradebook: one JSON object a line on stdout."""
    if not course.unit_names():
        refuse("Nothing is built yet: run `autograder build` first.")
    our_fault = False
    try:
        settings = asked(require_isolation, trust_submissions)
        for number, report in enumerate(_reports(notebooks, device, settings), start=1):
            with results():
                sys.stdout.buffer.write(json_line(report))
            our_fault = our_fault or report.status == "grader_error"
            if aside.is_terminal and len(notebooks) > 1:
                remark(f"{number} of {len(notebooks)}: {notebooks[number - 1]}")
    except (BadSettings, MarkerRefused, MarkerStopped) as reason:
        refuse(reason)
    if our_fault:
        raise typer.Exit(OUR_FAULT)


def _reports(notebooks: Sequence[Path], device: Device, settings: Settings) -> Iterator[Report]:
    """A report on each; a marking process that ends is replaced.

    Raises MarkerRefused, and MarkerStopped if none starts.
    """
    private = sorted({Path(os.path.realpath(notebook)).parent for notebook in notebooks})  # even of a link to itself
    marker = Marker(device, settings, private=private)
    try:
        ready = marker.ready
        for notebook in notebooks:
            for tries_left in reversed(range(_TRIES)):
                try:
                    report = marker.mark_file(notebook)
                    break
                except MarkerStopped as stopped:
                    report = stopped_at(str(notebook), stopped, ready)
                    marker.close()
                    marker = Marker(device, settings, private=private)
                    if not tries_left:
                        remark(f"{notebook}: {stopped}")
            yield report
    finally:
        marker.close()

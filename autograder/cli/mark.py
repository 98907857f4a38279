"""`autograder mark`."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from .. import course
from ..grading.client import Grader, GraderRefused, GraderStopped
from ..grading.requests import Device
from ..settings import BadSettings
from .isolation import Require, Trust, asked
from .saying import aside, refuse


def mark(
    notebooks: Annotated[list[Path], typer.Argument(help="Notebook files, under any name.")],
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    require_isolation: Require = None,
    trust_submissions: Trust = False,
) -> None:
    """Mark notebook files, without a gradebook: one JSON object a line on stdout."""
    if not course.unit_names():
        refuse("Nothing is built yet: run `autograder build` first.")
    try:
        settings = asked(require_isolation, trust_submissions)
    except BadSettings as reason:
        refuse(reason)
    with Grader(device, settings, private=sorted({notebook.resolve().parent for notebook in notebooks})) as grader:
        try:
            for number, notebook in enumerate(notebooks, start=1):
                report = grader.mark_file(notebook)
                sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
                sys.stdout.flush()
                if aside.is_terminal and len(notebooks) > 1:
                    aside.print(f"{number} of {len(notebooks)}: {notebook}", markup=False, highlight=False)
        except (GraderRefused, GraderStopped) as reason:
            refuse(reason)
        except KeyboardInterrupt:
            refuse("Interrupted.")

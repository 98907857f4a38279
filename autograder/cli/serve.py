"""The command `autograder serve`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .. import course
from ..pool import grading_pool
from ..pool.requests import Device, Ready
from ..reports.exports import json_line
from .console import (
    Course,
    IdColumn,
    Require,
    RosterFile,
    Trust,
    class_folder,
    isolation_settings,
    print_lines,
    relative_path,
    remark,
    results,
    schema_option,
)

_MOST_PROCESSORS = 3
"""Maximum default number of grading processes, without the one that is added for a submission that hangs."""

if TYPE_CHECKING:  # nbgrader takes seconds to import
    from ..serving.served_unit import Served


def serve(
    units: Annotated[list[str], typer.Argument(metavar="UNIT...", help="The units, e.g. self_attention.")],
    course_folder: Course = None,
    attempts: Annotated[
        int | None,
        typer.Option(min=1, help="The most files of one student and unit to grade within an hour. Later files wait."),
    ] = None,
    show: Annotated[
        Literal["check", "names", "all"],
        typer.Option(help="What students see before the due date: the public examples, the mistakes' names, or all."),
    ] = "all",
    roster: RosterFile = None,
    id_column: IdColumn = None,
    process_count: Annotated[
        int,
        typer.Option(
            "--markers",
            "--workers",
            min=1,
            show_default=f"one more than processors, at most {_MOST_PROCESSORS + 1}",
            help="The number of grading processes; give one more than the submissions that may hang at once.",
        ),
    ] = min(grading_pool.processor_count(), _MOST_PROCESSORS) + 1,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Also accept submissions by HTTP on this port of this machine; 0 for a free port."
        ),
    ] = None,
    unlisted: Annotated[
        bool, typer.Option("--unlisted", help="Also accept submissions by HTTP for ids that are not on the roster.")
    ] = False,
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    require_isolation: Require = None,
    trust_submissions: Trust = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each submission.")] = False,
    schema: Annotated[bool, schema_option("serving.served_unit", "Served", "a line of JSON")] = False,
) -> None:
    """Until Ctrl-C, grade each submission when it arrives, record it, and return the feedback to the student.

    Submissions arrive in the exchange and in COURSE/submitted. Stop the command at any time: the next start grades what
    is left. `grade` and formgrader can be used at the same time.
    """
    from ..classroom.assignment import NothingToGrade, assignment
    from ..gradebook.roster import Strangers
    from ..serving.serve import serve as serve_course
    from ..serving.served_unit import KitChanged, ServeOptions

    try:
        root = class_folder(course_folder).resolve()
        settings = isolation_settings(require_isolation, trust_submissions)
        options = ServeOptions(root, device, settings, attempts, show, roster, id_column, unlisted)
        units = list(dict.fromkeys(units))
        for unit in units:
            try:
                assignment(unit, root, None, roster, options.id_column)
            except (NothingToGrade, Strangers, course.UnusableUnit):
                if not course.released(unit, root).is_file():
                    raise
                # Serving reports the problem at its start, and serves the other units.
        serve_course(
            units,
            options,
            process_count=process_count,
            port=port,
            on_start=lambda ready, at: announce_start(units, root, ready, at),
            on_outcome=lambda served: _print(served, with_unit=len(units) > 1, as_json=as_json),
            remark=remark,
        )
    except KitChanged:
        remark("The course, its settings or the autograder have changed: starting again.")
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    except KeyboardInterrupt:
        remark("Stopped. The gradebook has all grades so far. To grade the rest, start `serve` again.")


def announce_start(units: list[str], root: Path, ready: Ready, port: int | None) -> None:
    """Print what is served, and where requests are answered."""
    listening = "" if port is None else f"Requests: http://127.0.0.1:{port}, with the token in .serving/token. "
    remark(
        f"Serving {', '.join(units)} in {relative_path(root)}. "
        f"Isolation {ready.isolation}: {', '.join(ready.enforced)}. {listening}Ctrl-C stops it."
    )


def _print(served: "Served", *, with_unit: bool, as_json: bool) -> None:
    """Print the outcome of a submission on one line."""
    if not as_json:
        print_lines([submission_line(served, with_unit=with_unit)])
        return
    with results():
        sys.stdout.buffer.write(json_line(served))
        sys.stdout.buffer.flush()


def submission_line(served: "Served", *, with_unit: bool) -> str:
    """Return the line that tells the instructor the outcome of one submission."""
    time = served.time.astimezone()
    parts = [f"{time:%H:%M:%S}", served.student, *([served.unit] if with_unit else []), served.status]
    if served.waits_until:
        until = served.waits_until.astimezone()
        day = "" if until.date() == time.date() else f"{until:%Y-%m-%d} "
        parts.append(f"until {day}{until:%H:%M:%S}")
    else:
        parts += [f"{served.score:g} of {served.max_score:g}", f"{served.seconds:.2f} s"]
    if served.time_stamp:
        parts.append(f"LATENESS UNKNOWN: its timestamp.txt says `{served.time_stamp}`")
    if served.not_written:
        parts.append(f"not written: {', '.join(served.not_written)}")
    if served.problem:
        parts.append(f"NOT RECORDED: {served.problem}")
    return "  ".join(parts)

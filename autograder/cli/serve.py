"""`autograder serve`."""

import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .. import course
from ..classroom import processors
from ..client.requests import Device, Ready
from ..course.settings import BadSettings
from ..reports.json_output import json_line
from .isolation import Require, Trust, asked
from .roster import Course, IdColumn, RosterFile, class_folder
from .saying import console, refuse, remark, results, short, shown

_MOST_PROCESSORS = 3
"""For as many there is a marker, if none is asked for, and one more for a submission that hangs."""

if TYPE_CHECKING:  # nbgrader takes seconds to import
    from ..serving.rules import Served


def _print_schema(asked: bool) -> None:
    if asked:
        from ..reports.json_output import json_schema
        from ..serving.rules import Served

        typer.echo(json_schema(Served), nl=False)
        raise typer.Exit


def serve(
    units: Annotated[list[str], typer.Argument(metavar="UNIT...", help="The units, e.g. self_attention.")],
    course_folder: Course = None,
    attempts: Annotated[
        int | None,
        typer.Option(min=1, help="How many files of a student's in a unit are marked in any hour; later ones wait."),
    ] = None,
    show: Annotated[
        Literal["check", "names", "all"],
        typer.Option(help="What students see before the due date: the public examples, the mistakes' names, or all."),
    ] = "all",
    roster: RosterFile = None,
    id_column: IdColumn = None,
    markers: Annotated[
        int,
        typer.Option("--markers", "--workers", min=1, help="Marking processes, one more than may hang at once."),
    ] = min(processors.count(), _MOST_PROCESSORS) + 1,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Take hand-ins by HTTP on this port of this machine too; 0 for a free one."
        ),
    ] = None,
    unlisted: Annotated[
        bool, typer.Option("--unlisted", help="Take hand-ins by HTTP for ids that are not on the roster, too.")
    ] = False,
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    require_isolation: Require = None,
    trust_submissions: Trust = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a submission.")] = False,
    schema: Annotated[
        bool,
        typer.Option("--schema", is_eager=True, callback=_print_schema, help="Print the JSON Schema of such a line."),
    ] = False,
) -> None:
    """Mark each submission as soon as it is handed in, until Ctrl-C: into the gradebook, and back to the student.

    Takes what arrives in the exchange and in COURSE/submitted. Stop it at any moment: what is not marked yet is marked
    when it is started again. `grade` and formgrader can be used beside it.
    """
    from ..classroom.assignment import NothingToGrade, assignment
    from ..client.marker import MarkerRefused, MarkerStopped
    from ..gradebook.class_list import Strangers
    from ..gradebook.course_directory import CourseProblem
    from ..gradebook.roster import BadRoster
    from ..serving.rules import Rules, Terms
    from ..serving.serve import serve as serve_course
    from ..serving.unit_served import KitChanged

    try:
        root = class_folder(course_folder).resolve()
        settings = asked(require_isolation, trust_submissions)
        terms = Terms(root, device, settings, Rules(attempts, show), roster, id_column, unlisted)
        units = list(dict.fromkeys(units))
        for unit in units:
            try:
                assignment(unit, root, None, roster, terms.id_column, newest=lambda *_: None)  # nothing is read
            except (NothingToGrade, Strangers, course.UnusableUnit):
                if not course.released(unit, root).is_file():
                    raise
                # What is wrong is said as soon as it serves: it keeps no other unit from being marked.
        serve_course(
            units,
            terms,
            markers=markers,
            port=port,
            on_start=lambda ready, at: _begin(units, root, ready, at),
            tell=lambda served: _print(served, with_unit=len(units) > 1, as_json=as_json),
            remark=remark,
        )
    except KitChanged:
        remark("The course, its settings or the kit have changed: starting anew.")
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    except (course.UnknownUnit, course.UnusableUnit, BadSettings, NothingToGrade, BadRoster, CourseProblem) as reason:
        refuse(reason)
    except (MarkerRefused, MarkerStopped) as reason:
        refuse(reason)
    except KeyboardInterrupt:
        remark("Stopped. What was marked is in the gradebook; what was not is marked when this is started again.")


def _begin(units: list[str], root: Path, ready: Ready, port: int | None) -> None:
    listening = "" if port is None else f"Requests: http://127.0.0.1:{port}, with the token in .serving/token. "
    remark(
        f"Serving {', '.join(units)} in {short(root)}. Isolation {ready.isolation}: {', '.join(ready.enforced)}. "
        f"{listening}Ctrl-C stops it."
    )


def _print(served: "Served", *, with_unit: bool, as_json: bool) -> None:
    """One submission, on a line."""
    with results():
        if as_json:
            sys.stdout.buffer.write(json_line(served))
            sys.stdout.buffer.flush()
            return
        console.print(shown(_line(served, with_unit=with_unit)), highlight=False, soft_wrap=True)


def _line(served: "Served", *, with_unit: bool) -> str:
    parts = [f"{_local(served.time):%H:%M:%S}", served.student, *([served.unit] if with_unit else []), served.status]
    if served.waits_until:
        until = _local(served.waits_until)
        day = "" if until.date() == _local(served.time).date() else f"{until:%Y-%m-%d} "
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


def _local(moment: datetime) -> datetime:
    return moment.astimezone()

"""`autograder matrix`."""

from contextlib import ExitStack
from functools import cache
from typing import Annotated

import typer
from rich.progress import track
from rich.table import Table

from .. import output_files
from .saying import aside, console, refuse, results

PAGE = "docs/matrix.md"


def matrix(
    units: Annotated[list[str] | None, typer.Argument(metavar="[UNIT]...", help="The units; all if not given.")] = None,
    only: Annotated[
        str, typer.Option("-k", metavar="NAME", help="Only answers with this in their name, or in their exercise's.")
    ] = "",
    sandboxed: Annotated[
        bool, typer.Option("--sandboxed", help="Type each answer into a notebook and mark it like a submission.")
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help=f"Write the figures to {PAGE}, and the golden record.")
    ] = False,
) -> None:
    """Mark every answer that the kit knows: which mistakes are caught and named, which right answers are refused."""
    if write and (units or only):
        refuse(f"{PAGE} has the figures of all known answers: give --write without a unit and without -k.")
    from .. import course

    try:
        for unit in units or ():
            course.unit(unit)  # before anything is imported that takes seconds
    except (course.UnknownUnit, course.UnusableUnit) as error:
        refuse(error)
    if write:
        _refuse_outdated()
    from ..catalogue import EditError
    from ..client.marker import Marker, MarkerRefused, MarkerStopped
    from ..course.folder import folder
    from ..course.settings import BadSettings, load
    from ..diagnosis.mutation_report import (
        COLUMNS,
        Way,
        check_verdicts,
        count,
        count_by,
        count_by_kind,
        entries,
        outcome,
    )
    from ..diagnosis.mutation_report import outcomes as all_outcomes

    try:
        known = entries(tuple(dict.fromkeys(units or ())), only)
        if not known:
            of = f" of {', '.join(units)}" if units else ""
            wanted = f" with `{only}` in its name or its exercise's" if only else ""
            refuse(f"There is no known answer{of}{wanted}. A new exercise's are tried once `autograder build` has run.")
        way: Way = "sandboxed" if sandboxed else "in process"
        settings = load()
        with ExitStack() as stack:
            marker = cache(lambda: stack.enter_context(Marker("cpu", settings, own_code_alone=not sandboxed)))
            found = (
                (outcome(marker(), unit, entry, way) for unit, entry in known)
                if sandboxed
                else all_outcomes(marker, known, is_new=not (units or only))
            )
            shown = track(found, total=len(known), console=aside, transient=True, disable=not aside.is_terminal)
            outcomes = list(shown)
    except (EditError, BadSettings, MarkerRefused, MarkerStopped) as error:
        refuse(error)
    table = Table(title=f"{len(outcomes)} known answers, marked {way}", title_justify="left")
    table.add_column("", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for exercise, counts in count_by(outcomes, lambda one: one.entry.exercise, COLUMNS):
        table.add_row(exercise, *map(str, counts))
    table.add_section()
    for kind, counts in count_by_kind(outcomes):
        if counts[0]:
            table.add_row(kind, *map(str, counts))
    table.add_section()
    table.add_row("all", *map(str, count(outcomes, COLUMNS)))
    if write:
        from ..diagnosis.golden_record import records
        from ..diagnosis.report_page import page

        checked = list(check_verdicts())
        texts = {PAGE: page(outcomes, checked), **records(outcomes, checked)}
        try:
            output_files.write({folder() / path: text.encode() for path, text in texts.items()}, makes_folder=True)
        except output_files.NotWritable as reason:
            refuse(reason)
    with results():
        console.print(table)
        for one in outcomes:
            if not one.is_as_expected:
                said = one.report.diagnosis.names if one.report.diagnosis else "no name"
                console.print(f"{one.entry.exercise}: {one.entry.name}: {one.report.status}, {said}", markup=False)
        if write:
            console.print(f"{PAGE} written.")
    if not all(one.is_as_expected for one in outcomes):
        refuse("The graders do not do what they should: see the lines above.")


def _refuse_outdated() -> None:
    """The page is about what is released too: so that must be what is built now."""
    from ..build import course_files
    from ..build.source_notebook import BuildError
    from ..client.marker import MarkerRefused, MarkerStopped
    from ..course.settings import BadSettings

    try:
        changes = course_files.differences()
    except (BuildError, BadSettings, MarkerRefused, MarkerStopped) as error:
        refuse(error)
    if changes:
        refuse(f"{changes[0].path} is {changes[0].what}: run `autograder build` first.")

"""`autograder matrix`."""

from typing import Annotated

import typer
from rich.progress import track
from rich.table import Table

from .saying import aside, console, refuse, results

PAGE = "docs/matrix.md"


def matrix(
    sandboxed: Annotated[
        bool, typer.Option("--sandboxed", help="Type each answer into a notebook and mark it like a submission.")
    ] = False,
    write: Annotated[bool, typer.Option("--write", help=f"Write the figures to {PAGE}.")] = False,
) -> None:
    """Mark every answer that the kit knows: which mistakes are caught and named, which right answers are refused."""
    from dataclasses import astuple

    from ..client.marker import Marker, MarkerRefused, MarkerStopped
    from ..course.folder import folder
    from ..course.settings import BadSettings, load
    from ..proof.first_word import words
    from ..proof.matrix import COLUMNS, Way, by_exercise, by_kind, entries, figures, outcome
    from ..proof.page import page

    try:
        known = entries()
        with Marker("cpu", load() if sandboxed else load().trusting()) as marker:  # the kit's own code needs no sandbox
            way: Way = "sandboxed" if sandboxed else "in process"
            shown = track(known, console=aside, transient=True, disable=not aside.is_terminal)
            outcomes = [outcome(marker, unit, entry, way) for unit, entry in shown]
    except (BadSettings, MarkerRefused, MarkerStopped) as error:
        refuse(error)
    table = Table(title=f"{len(outcomes)} known answers, marked {way}", title_justify="left")
    table.add_column("", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for _, exercise, row in by_exercise(outcomes):
        table.add_row(exercise, *map(str, astuple(row)))
    table.add_section()
    for kind, row in by_kind(outcomes):
        table.add_row(kind, *map(str, astuple(row)[:5]))
    table.add_section()
    total = figures(outcomes)
    table.add_row("all", *map(str, astuple(total)))
    if write:
        (folder() / PAGE).write_text(page(outcomes, list(words())))
    with results():
        console.print(table)
        for one in outcomes:
            if one.refused or one.wrongly_named or (one.wrong and not ((one.caught or one.told) and one.named)):
                said = one.report.diagnosis.names if one.report.diagnosis else "no name"
                console.print(f"{one.entry.exercise}: {one.entry.name}: {one.report.status}, {said}", markup=False)
        if write:
            console.print(f"{PAGE} written.")
    if total.refused or total.wrongly_named or not total.misconceptions == total.caught + total.told == total.named:
        refuse("The graders do not do what they should: see the lines above.")

"""`autograder build`."""

from typing import Annotated

import typer

from ..output_files import NotWritable
from .saying import console, refuse, results, shown


def build(
    units: Annotated[list[str] | None, typer.Argument(metavar="[UNIT]...", help="The units; all if not given.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if something is out of date.")] = False,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="Make single_file/ too: notebooks that need no file beside them.")
    ] = False,
) -> None:
    """Make source/ from exercises/ and solutions/, and release/ from source/."""
    if check and single_file:
        refuse("--check changes nothing, and --single-file writes notebooks: give one of the two.")
    from ..build import course_files
    from ..build.source_notebook import BuildError
    from ..client.marker import MarkerRefused, MarkerStopped
    from ..course.settings import BadSettings

    try:
        its = list(units or ())
        changes = course_files.differences(its) if check else course_files.build(its, in_single_files=single_file)
    except (BuildError, BadSettings, MarkerRefused, MarkerStopped, NotWritable) as error:
        refuse(error)
    with results():
        for change in changes:
            console.print(shown(f"{change.path}: {change.what}"), highlight=False)
    if check and changes:
        refuse("source/ and release/ are not what exercises/ and solutions/ make: run `autograder build`.")
    where = f" of {', '.join(units)}" if units else ""
    with results():
        console.print(f"{len(changes)} files written." if changes else f"source/ and release/{where} are up to date.")

"""`autograder new-exercise`."""

from typing import Annotated

import typer

from .saying import console, refuse, results, short, shown


def new_exercise(
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="The unit; it is begun too if it is not there yet.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What students are to write: the function or class.")],
    of_a_class: Annotated[bool, typer.Option("--class", help="A class is to be written, and not a function.")] = False,
) -> None:
    """Begin an exercise: its text, solution, graders, mistakes and right answers, with what to write marked."""
    from ..build.new_exercise import NotBegun
    from ..build.new_exercise import new_exercise as begin
    from ..build.to_write import MARK
    from ..course.settings import BadSettings

    try:
        written = begin(unit, name, of_a_class=of_a_class)
    except (NotBegun, BadSettings) as reason:
        refuse(reason)
    with results():
        for path in written:
            console.print(shown(short(path)), highlight=False, soft_wrap=True)
        said = f"Write what stands behind each `{MARK}`; `autograder build {unit}` says what is left."
        console.print(shown(said), highlight=False, soft_wrap=True)

"""`autograder reweight`: other points for an exercise of a class that is graded."""

from typing import Annotated

import typer

from .. import course
from .console import fail, print_lines, remark
from .options import Course, UnitName, class_folder


def reweight(
    unit: UnitName,
    exercise: Annotated[
        str, typer.Argument(metavar="[EXERCISE]", help="The exercise: the name of its function or class.")
    ] = "",
    points: Annotated[
        float | None, typer.Option(metavar="POINTS", help="Scale everyone's points to this maximum.")
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Count the exercise neither in anyone's points nor in the maximum.")
    ] = False,
    give_full: Annotated[
        bool, typer.Option("--give-full", help="Give the exercise's full points to everyone who submitted the unit.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Count the points again that the exercise was released with.")
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="Print the unit's changes, and change nothing.")] = False,
    course_folder: Course = None,
) -> None:
    """Change the points of an exercise for a whole class. The next `grade` applies it; --dry-run shows it first."""
    root = class_folder(course_folder).resolve()
    kinds = {"points": points is not None, "drop": drop, "give_full": give_full, "undo": undo}
    if sum(kinds.values()) + list_all != 1 or bool(exercise) == list_all:
        fail(
            f"Give an exercise and one of --points, --drop, --give-full and --undo: `autograder reweight {unit} "
            f"EXERCISE --points 2`; or `autograder reweight {unit} --list`."
        )
    from ..gradebook.reweights import Reweighting

    reweighting = Reweighting(root, course.unit(unit, root))
    if list_all:
        lines = list(reweighting.log())
        print_lines([f"{unit}: changes of points: {len(lines)}", *lines])
        return
    kind = next(kind for kind, is_given in kinds.items() if is_given)
    rule = reweighting.put(exercise, kind, points)
    released = reweighting.unit.exercise(exercise).points
    of_pages = f"Pages will say: {rule.sentence(exercise)}" if rule else ""
    print_lines([of_pages or f"{exercise} counts {released:g} points again, as released."])
    remark(f"`autograder grade {unit} --dry-run` shows whose points change; `autograder grade {unit}` changes them.")

"""What the check that is released with a unit knows, made of one exercise after another, or of several at once."""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from .. import catalogue
from ..catalogue.kept import Kept
from ..client.requests import Handout
from ..course import content
from ..graders.collected import Graders
from ..handout.written_values import shortened
from . import known_mistakes, public_examples, right_steps
from .known_mistakes import Shown
from .side_by_side import each
from .solution_fails import ensure_passes
from .written_calls import NotReleasable

T = TypeVar("T")


class _Made(msgspec.Struct):
    """What is released with one exercise; the fields are those of `Handout`."""

    examples: dict[str, Any]
    mistakes: list[Any]
    steps: dict[str, Any]


def of_unit(graders: Graders, unit: str, *, is_new: bool) -> Handout:
    """What is released with the unit. is_new: make it all, though some may be kept from before.

    Raises SolutionFails, NotReleasable and ProcessLost.
    """
    _refuse_two_hunts_of_one(graders, unit)
    ensure_passes(graders, unit)
    exercises = list(graders[unit])
    kept = {exercise: Kept("handout", unit, exercise) for exercise in exercises}
    found = {} if is_new else {name: made for name, its in kept.items() if (made := _read(its, _Made)) is not None}
    missing = _dearest_first(unit, [exercise for exercise in exercises if exercise not in found])
    for exercise, made in _made(graders, unit, missing, is_new=is_new).items():
        found[exercise] = made
        kept[exercise].write(made)
    steps = {
        name: found[name].steps if name in found else right_steps.of_exercise(unit, name)
        for name in content.solutions(unit)
    }
    return Handout(
        {exercise: found[exercise].examples for exercise in exercises},
        {exercise: found[exercise].mistakes for exercise in exercises},
        {exercise: of for exercise, of in steps.items() if of["cases"]},
    )


def _refuse_two_hunts_of_one(graders: Graders, unit: str) -> None:
    hunted = [one.hunted.of for its_graders in graders[unit].values() for one in its_graders if one.hunted is not None]
    if twice := sorted({name for name in hunted if hunted.count(name) > 1}):
        raise NotReleasable(f"Two exercises hunt `{twice[0]}`; a notebook's `buggy` can give one wrong function of it.")


def _made(graders: Graders, unit: str, exercises: Sequence[str], *, is_new: bool) -> dict[str, _Made]:
    """What is released with some exercises. What a mistake shows is kept by itself, for a change in another one."""
    every = each(lambda exercise: public_examples.of_exercise(unit, graders[unit][exercise]), exercises)
    examples = dict(zip(exercises, every, strict=True))
    kept = {exercise: Kept("shown", unit, exercise) for exercise in exercises}
    before = {} if is_new else {name: _read(its, dict[str, Shown]) or {} for name, its in kept.items()}
    shown = known_mistakes.shown(unit, examples, before)
    for exercise, its in kept.items():
        its.write(shown[exercise])
    steps = each(partial(right_steps.of_exercise, unit), exercises)
    return {
        exercise: _Made(
            {**of, "examples": [{**one, "steps": shortened(one["steps"])} for one in of["examples"]]},
            known_mistakes.looked_up(unit, exercise, shown[exercise]),
            its_steps,
        )
        for (exercise, of), its_steps in zip(examples.items(), steps, strict=True)
    }


def _read(kept: Kept, kind: type[T]) -> T | None:
    try:
        return msgspec.convert(kept.read(), kind | None)
    except msgspec.ValidationError:
        return None


def _dearest_first(unit: str, exercises: Sequence[str]) -> list[str]:
    known = [entry.exercise for entry in catalogue.misconceptions(unit).values()]  # read once, before it is forked
    return sorted(exercises, key=known.count, reverse=True)

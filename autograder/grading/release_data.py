"""Make the data that are released with a unit, for several exercises in parallel.

The data of an exercise are cached under a digest of everything that they depend on.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from .. import catalogue
from ..catalogue.bug_hunts import hunt_of
from ..catalogue.build_cache import BuildCache
from ..course import content
from ..graders.collection import HiddenTests
from ..pool.requests import Handout
from ..student_check.written_values import shorten_steps
from .machine import parallel_map
from .public_examples import examples_of
from .reference_trace import written_traces
from .release_misconceptions import Signatures, released_misconceptions, signatures
from .released_steps import NotReleasable
from .verify_solutions import verify_solutions

T = TypeVar("T")


class _Released(msgspec.Struct):
    """The released data of one exercise, with the fields of `pool.requests.Handout`."""

    examples: dict[str, Any]
    mistakes: list[Any]
    steps: dict[str, Any]


def release_data(graders: HiddenTests, unit: str, *, is_new: bool) -> Handout:
    """Verify a unit's solutions, and return the data that are released with the unit. is_new: ignore cached data.

    Raises SolutionFails, NotReleasable and ProcessLost.
    """
    _refuse_duplicate_hunts(graders, unit)
    verify_solutions(graders, unit)
    exercises = list(graders[unit])
    caches = {exercise: BuildCache("handout", unit, exercise) for exercise in exercises}
    cached = {exercise: None if is_new else cache.read(_Released) for exercise, cache in caches.items()}
    data = {exercise: released for exercise, released in cached.items() if released is not None}
    # Read once, before processes are forked. The exercises with the most misconceptions take longest.
    misconceptions = [entry.exercise for entry in catalogue.misconceptions(unit).values()]
    missing = sorted((name for name in exercises if name not in data), key=misconceptions.count, reverse=True)
    for exercise, released in _make(graders, unit, missing, is_new=is_new).items():
        data[exercise] = released
        caches[exercise].write(released)
    traces = {
        name: data[name].steps if name in data else written_traces(unit, name) for name in content.solutions(unit)
    }
    return Handout(
        {exercise: data[exercise].examples for exercise in exercises},
        {exercise: data[exercise].mistakes for exercise in exercises},
        {exercise: written for exercise, written in traces.items() if written["cases"]},
    )


def _refuse_duplicate_hunts(graders: HiddenTests, unit: str) -> None:
    hunted = [hunt.of for tests in graders[unit].values() for test in tests if (hunt := hunt_of(test)) is not None]
    if twice := sorted({name for name in hunted if hunted.count(name) > 1}):
        raise NotReleasable(
            f"Two bug hunts are for `{twice[0]}`; `buggy` can give only one wrong version of each function."
        )


def _make(graders: HiddenTests, unit: str, exercises: Sequence[str], *, is_new: bool) -> dict[str, _Released]:
    """Make the released data of some exercises. is_new: ignore cached signatures.

    Signatures have a separate cache, because they do not depend on the exercise's other misconceptions.
    """
    made = parallel_map(lambda exercise: examples_of(unit, graders[unit][exercise]), exercises)
    examples = dict(zip(exercises, made, strict=True))
    caches = {exercise: BuildCache("shown", unit, exercise) for exercise in exercises}
    before = {} if is_new else {name: cache.read(dict[str, Signatures]) or {} for name, cache in caches.items()}
    found = signatures(unit, examples, before)
    for exercise, cache in caches.items():
        cache.write(found[exercise])
    traces = parallel_map(partial(written_traces, unit), exercises)
    return {
        exercise: _Released(
            {**its, "examples": [{**one, "steps": shorten_steps(one["steps"])} for one in its["examples"]]},
            released_misconceptions(unit, exercise, found[exercise]),
            written,
        )
        for (exercise, its), written in zip(examples.items(), traces, strict=True)
    }

"""Make the data that are released with a unit, for several exercises in parallel.

The data of an exercise are cached under a digest of everything that they depend on. Signatures in them describe how
each misconception fails the examples, so that the student check can diagnose it. A misconception that only raises
errors of its own `raise`, or passes all examples, is left to grading.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import torch

from .. import catalogue
from ..catalogue.bug_hunts import hunt_of
from ..catalogue.build_cache import BuildCache
from ..core.judgement import ANY_GRADIENTS, Signature, is_telling, match
from ..course import content
from ..graders.collection import HiddenTests
from ..pool.requests import Handout
from ..student_check.examples import shorten_steps
from ..student_check.run_examples import new_notebook_state, run_examples
from .machine import parallel_map
from .public_examples import examples_of, verify_solutions
from .reference_trace import written_traces
from .released_steps import NotReleasable

MOST_SENTENCES = 4
"""Misconceptions that the examples cannot tell apart are diagnosed together, up to this number."""
_DIGITS = 4
"""Decimals of a released sum; sums are compared with three."""

Signatures = dict[int, Signature]
"""The signatures of the examples that a misconception fails, by number; empty if it is left to grading."""


def signatures(
    unit: str, exercises: Mapping[str, Mapping[str, Any]], before: Mapping[str, Mapping[str, Signatures]]
) -> dict[str, dict[str, Signatures]]:
    """Return the signatures of the misconceptions in some exercises, by exercise and code. Raises ProcessLost.

    exercises: the released examples, by exercise. before: cached signatures, which are not computed again.
    """
    wrong = [(exercise, one, one.source()) for exercise in exercises for one in _misconceptions(unit, exercise)]
    new = [(exercise, one) for exercise, one, code in wrong if code not in before.get(exercise, {})]
    computed = iter(parallel_map(lambda item: _signatures(unit, item[1], exercises[item[0]]), new))
    found: dict[str, dict[str, Signatures]] = {exercise: {} for exercise in exercises}
    for exercise, _, code in wrong:
        cached = before.get(exercise, {})
        found[exercise][code] = cached[code] if code in cached else next(computed)
    return found


def released_misconceptions(unit: str, exercise: str, found: Mapping[str, Signatures]) -> list[dict[str, Any]]:
    """Return the misconceptions of an exercise as JSON, grouped if the student check cannot tell them apart."""
    groups: list[tuple[list[str], Signatures, set[bool]]] = []
    for one in _misconceptions(unit, exercise):
        shows = found[one.source()]
        if not shows:
            continue
        same = next((group for group in groups if _is_same(group[1], shows)), None)
        sentences, _, of_gradients = same or ([], shows, set[bool]())
        if same is None:
            groups.append((sentences, shows, of_gradients))
        if one.sentence not in sentences:  # else it is a variant of the same misconception
            sentences.append(one.sentence)
        of_gradients.add(one.kind == "gradient")
    return [
        {
            "sentences": sentences,
            "shows": {str(number): _rounded(one) for number, one in shows.items()},
            **({} if any(of_gradients) else {ANY_GRADIENTS: True}),
        }
        for sentences, shows, of_gradients in groups
        if len(sentences) <= MOST_SENTENCES
    ]


def _misconceptions(unit: str, exercise: str) -> list[catalogue.Candidate]:
    """Return those of the exercise that a hidden test detects, by name."""
    known = sorted(catalogue.misconceptions(unit).values(), key=lambda one: one.name)
    return [one for one in known if one.exercise == exercise and one.caught_by != catalogue.FORBIDDEN]


def _signatures(unit: str, answer: catalogue.Candidate, released: Mapping[str, Any]) -> Signatures:
    """Return the signatures, with sums in float64 if the code allows it: all machines then give the same digits."""
    found, exact = (_run(unit, answer, released, dtype) for dtype in (None, torch.float64))
    if not any(map(is_telling, found.values())):
        return {}
    return {number: _exact(one, exact.get(number, one)) for number, one in found.items()}


def _run(unit: str, answer: catalogue.Candidate, released: Mapping[str, Any], dtype: torch.dtype | None) -> Signatures:
    names = {**content.solutions(unit), answer.exercise: answer.recreated().answer}
    with new_notebook_state():
        # Forbidden libraries fail no example.
        found = run_examples(names, answer.exercise, {"points": 1, **released, "forbids": ()}, [], dtype)
    return {} if found.is_late else found.signatures


def _exact(signature: Signature, exact: Signature) -> Signature:
    """Return the signature in float32, with the sums of the one in float64."""
    # The checksums are the student's.
    return exact if match(signature, exact) else signature


def _rounded(signature: Signature) -> Signature:
    return [number if isinstance(number, int) else round(number, _DIGITS) for number in signature]


def _is_same(one: Signatures, other: Signatures) -> bool:
    """Return whether the student check cannot tell two misconceptions apart."""
    return one.keys() == other.keys() and all(match(one[number], other[number]) for number in one)


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

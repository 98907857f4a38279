"""Make the data that are released with a unit, several exercises at the same time.

The data of an exercise are cached under a digest of everything that they depend on.

Numbers describe what each misconception does on the examples, so that the student check can diagnose it: its results on
the public examples. If these are only errors that its own `raise` makes, or equal those of a right answer, it is
described by its results on the first other example that it fails. One that shows only such errors is left to grading.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import torch

from .. import catalogue
from ..catalogue.bug_hunts import hunt_of
from ..catalogue.build_cache import BuildCache
from ..course import content
from ..graders.collection import HiddenTests
from ..pool.requests import Handout
from ..student_check.mistake_signatures import match, pass_pattern, public_examples, signature
from ..student_check.run_examples import new_notebook_state, run_examples
from ..student_check.written_values import shorten_steps
from .machine import parallel_map
from .public_examples import examples_of
from .reference_trace import written_traces
from .released_steps import NotReleasable
from .verify_solutions import verify_solutions

MOST_SENTENCES = 4
"""Misconceptions that the examples cannot tell apart are diagnosed together, up to this number."""
_DIGITS = 4
"""Decimals of a released sum; sums are compared with three."""

Rows = list[list[int | float]]
"""Checksums, which are whole numbers, and sums."""
T = TypeVar("T")


class Signature(msgspec.Struct):
    """The results of a misconception on the examples."""

    passes: str
    """The pattern of all examples that it passes."""
    shows: Rows
    at: int | None = None
    """The number of the example that `shows` describes; None for the public ones."""
    is_known: bool = True
    """False if it cannot be distinguished from a right answer, or shows only errors of its own `raise`."""


def signatures(
    unit: str, exercises: Mapping[str, Mapping[str, Any]], before: Mapping[str, Mapping[str, Signature]]
) -> dict[str, dict[str, Signature]]:
    """Return the signatures of the misconceptions in some exercises, by exercise and code. Raises ProcessLost.

    exercises: the released examples, by exercise. before: cached signatures, which are not computed again.
    """
    right = [*catalogue.solutions(unit).values(), *catalogue.right_answers(unit).values()]
    right = [answer for answer in right if answer.exercise in exercises]
    rows = parallel_map(
        lambda answer: _rows_of(unit, answer, public_examples(exercises[answer.exercise]["examples"])), right
    )
    right_rows: dict[str, list[Rows]] = {exercise: [] for exercise in exercises}
    for answer, its_rows in zip(right, rows, strict=True):
        right_rows[answer.exercise].append(its_rows)
    wrong = [(exercise, one, one.source()) for exercise in exercises for one in _misconceptions(unit, exercise)]
    new = [(exercise, one) for exercise, one, code in wrong if code not in before.get(exercise, {})]

    @functools.cache
    def solution_rows(exercise: str, number: int) -> Rows:
        return _rows_of(unit, catalogue.solutions(unit)[exercise], [exercises[exercise]["examples"][number]])

    def signature(item: tuple[str, catalogue.Candidate]) -> Signature:
        exercise, one = item
        return _signature(unit, one, exercises[exercise], right_rows[exercise], partial(solution_rows, exercise))

    computed = iter(parallel_map(signature, new))
    found: dict[str, dict[str, Signature]] = {exercise: {} for exercise in exercises}
    for exercise, _, code in wrong:
        cached = before.get(exercise, {})
        found[exercise][code] = cached[code] if code in cached else next(computed)
    return found


def released_misconceptions(unit: str, exercise: str, found: Mapping[str, Signature]) -> list[dict[str, Any]]:
    """Return the misconceptions of an exercise as JSON, grouped if the student check cannot tell them apart."""
    groups: list[dict[str, Any]] = []
    for one in _misconceptions(unit, exercise):
        signature = found[one.source()]
        if not signature.is_known:
            continue
        at = {} if signature.at is None else {"at": signature.at}
        written = {"passes": signature.passes, "shows": signature.shows, **at}
        group = next((other for other in groups if _is_same(other, written)), None)
        if group is None:
            groups.append({"sentences": [one.sentence], **written})
        elif one.sentence not in group["sentences"]:  # else it is a variant of the same misconception
            group["sentences"].append(one.sentence)
    return [
        {**group, "shows": [[n if isinstance(n, int) else round(n, _DIGITS) for n in row] for row in group["shows"]]}
        for group in groups
        if len(group["sentences"]) <= MOST_SENTENCES
    ]


def _misconceptions(unit: str, exercise: str) -> list[catalogue.Candidate]:
    """Return those of the exercise that a hidden test detects, by name."""
    known = sorted(catalogue.misconceptions(unit).values(), key=lambda one: one.name)
    return [one for one in known if one.exercise == exercise and one.caught_by != catalogue.FORBIDDEN]


def _signature(
    unit: str,
    answer: catalogue.Candidate,
    released: Mapping[str, Any],
    right_rows: Sequence[Rows],
    solution_rows: Callable[[int], Rows],
) -> Signature:
    """right_rows: of right answers on the public examples. solution_rows: of the solution on a numbered example."""
    names, examples = _names(unit, answer), released["examples"]
    with new_notebook_state():
        # Forbidden libraries fail no example.
        tried = run_examples(names, answer.exercise, {"points": 1, **released, "forbids": ()}, []).tried
    passed = [not one.problem for one in tried]
    # The rows follow with the same names, as in the student check: code may remember earlier calls.
    signature = Signature(pass_pattern(examples, passed), _rows(names, public_examples(examples)))
    if _has_numbers(signature.shows) and not any(match(signature.shows, rows) for rows in right_rows):
        return signature
    for number, (example, is_passed) in enumerate(zip(examples, passed, strict=True)):
        if pass_pattern([example], [is_passed]) == "0" and not example.get("public", True):
            rows = _rows(names, [example])
            if _has_numbers(rows) and not match(rows, solution_rows(number)):
                return Signature(signature.passes, rows, number)
    signature.is_known = False
    return signature


def _names(unit: str, answer: catalogue.Candidate) -> dict[str, Any]:
    return {**content.solutions(unit), answer.exercise: answer.anew().answer}


def _rows_of(unit: str, answer: catalogue.Candidate, examples: list[Any]) -> Rows:
    return _rows(_names(unit, answer), examples)


def _rows(names: dict[str, Any], examples: list[Any]) -> Rows:
    """Return the results on the examples, in float64 if the code allows it: all machines then give the same digits."""
    rows, exact_rows = signature(names, examples), signature(names, examples, torch.float64)
    return [_exact(row, exact) for row, exact in zip(rows, exact_rows, strict=True)]


def _exact(row: list[float], exact: list[float]) -> list[float]:
    """Return the row of float32 results, with the sums of the float64 results."""
    # The checksums hold the dtypes, which must be the student's.
    sums = [mine if isinstance(mine, int) else other for mine, other in zip(row, exact, strict=False)]
    return sums if match([row], [sums]) else row


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether the student check cannot tell two misconceptions apart."""
    return all(one.get(name) == other.get(name) for name in ("passes", "at")) and match(one["shows"], other["shows"])


def _has_numbers(rows: Rows) -> bool:
    """Return whether the rows hold more than errors of code's own `raise`, in which many misconceptions end."""
    return any(isinstance(number, float) for row in rows for number in row)


class _Released(msgspec.Struct):
    """The data of one exercise, in the fields of `Handout`."""

    examples: dict[str, Any]
    mistakes: list[Any]
    steps: dict[str, Any]


def release_data(graders: HiddenTests, unit: str, *, is_new: bool) -> Handout:
    """Return the data that are released with a unit. is_new: ignore cached data.

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
    """Make the data of some exercises. Signatures have a cache of their own: they outlast changes of other answers."""
    made = parallel_map(lambda exercise: examples_of(unit, graders[unit][exercise]), exercises)
    examples = dict(zip(exercises, made, strict=True))
    caches = {exercise: BuildCache("shown", unit, exercise) for exercise in exercises}
    before = {} if is_new else {name: cache.read(dict[str, Signature]) or {} for name, cache in caches.items()}
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

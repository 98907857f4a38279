"""Answers without the work: they know the public examples by heart, look right from outside, or do nothing.

`python -m tests.adversaries every|part` prints, as JSON, what the graders of each exercise find in each of them, or in
a fifteenth of them: another one for the next exercise.
"""

import copy
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from autograder import catalogue, course
from autograder.core.arguments import tensors_in
from autograder.graders.collection import HiddenTest, HiddenTests, Verdict, collect
from autograder.grading import scoring
from autograder.grading.examiner import Examiner, candidate_bench
from autograder.student_check.examples import decode_value
from autograder.student_check.unit_data import EXAMPLES
from tests import released_data

Answer = Callable[..., Any]


def _nothing(right: Answer, *args: Any, **named: Any) -> Any:
    return None


def _raises(right: Answer, *args: Any, **named: Any) -> Any:
    raise RuntimeError("no")


def _refuses(right: Answer, *args: Any, **named: Any) -> Any:
    raise ValueError("no")


def _knows_no_key(right: Answer, *args: Any, **named: Any) -> Any:
    raise KeyError("no")


def _the_first(right: Answer, *args: Any, **named: Any) -> Any:
    return args[0]


def _ones_like_the_first(right: Answer, *args: Any, **named: Any) -> Any:
    return torch.ones_like(args[0])


def _empty(right: Answer, *args: Any, **named: Any) -> Any:
    return torch.empty(0)


def _empty_of_three_dimensions(right: Answer, *args: Any, **named: Any) -> Any:
    return torch.zeros(0, args[0].shape[-2], 0) if args[0].dim() > 1 else torch.zeros(0)


def _nan(right: Answer, *args: Any, **named: Any) -> Any:
    return _each(right(*args, **named), lambda one: one * torch.nan)


def _zeros(right: Answer, *args: Any, **named: Any) -> Any:
    return _each(right(*args, **named), torch.zeros_like)


def _zeros_with_gradients(right: Answer, *args: Any, **named: Any) -> Any:
    return _each(right(*args, **named), lambda one: one * 0)


def _chance(right: Answer, *args: Any, **named: Any) -> Any:
    return _each(right(*args, **named), lambda one: torch.rand(one.shape).to(one))


def _chance_with_gradients(right: Answer, *args: Any, **named: Any) -> Any:
    return _each(right(*args, **named), lambda one: one * 0 + torch.rand(one.shape).to(one))


def _dropped_at_the_end(right: Answer, *args: Any, **named: Any) -> Any:
    return _each(right(*args, **named), lambda one: torch.dropout(one * 0 + 1, 0.5, True))


def _row_by_row(right: Answer, *args: Any, **named: Any) -> Any:
    """The first numbers of the first argument in the result's shape: blind to the future, and wrong."""
    return _each(right(*args, **named), lambda one: one * 0 + args[0].flatten()[:1].to(one))


FALLBACKS = {
    fallback.__name__.strip("_").replace("_", " "): fallback
    for fallback in (
        _nothing, _raises, _refuses, _knows_no_key, _the_first, _ones_like_the_first, _empty,
        _empty_of_three_dimensions, _nan, _zeros, _zeros_with_gradients, _chance, _chance_with_gradients,
        _dropped_at_the_end, _row_by_row,
    )
}  # fmt: skip


_raised_elsewhere: list[Any] = []
"""With what an answer was called on another device, and raised an error."""


def _each(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The change made to each float tensor; what is no tensor is gone."""
    if isinstance(value, tuple):
        return tuple(_each(one, change) for one in value)
    if not isinstance(value, torch.Tensor):
        return None
    return change(value) if value.is_floating_point() else torch.zeros_like(value)


def _by_heart(unit: str, exercise: str) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Return a function that looks a call up among the public examples, and raises LookupError for any other call."""
    examples = released_data(unit)[EXAMPLES][exercise]["examples"]
    calls = [step for example in examples for step in example["steps"] if "result" in step]

    def look_up(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        for call in calls:
            known = tuple(decode_value(one) for one in call["args"])
            if len(known) == len(args) and call.get("named", {}) == named and all(map(_equal, known, args)):
                return decode_value(call["result"])
        raise LookupError

    return look_up


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and not other.is_meta:
        return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and not isinstance(one, torch.Tensor) and bool(one == other)


_PARTS = 15


def adversaries(unit: str, exercise: str, *, every: bool) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Each answer without work to the exercise, with and without the public examples, by name.

    Each twice: one goes on as ever on another device, the other raises an error there.
    """
    right = catalogue.solutions(unit)[exercise].answer
    by_heart = _by_heart(unit, exercise)
    place = [one.name for one in course.unit(unit).exercises].index(exercise)
    for number, (name, fallback) in enumerate(FALLBACKS.items()):
        if not every and number % _PARTS != place % _PARTS:
            continue
        for knows in (False, True):
            look_up = by_heart if knows else None
            said = f"{name}, {'public examples' if knows else 'nothing'} by heart"
            yield said, (_answer(right, fallback, look_up, False), _answer(right, fallback, look_up, True))


def _answer(right: Any, fallback: Answer, look_up: Any, raises_on_meta: bool) -> Any:
    def answer(solve: Answer, *args: Any, **named: Any) -> Any:
        if raises_on_meta and any(one.device.type == "meta" for one in tensors_in(args)):
            _raised_elsewhere.append(args)
            raise RuntimeError("not here")
        if look_up is not None:
            try:
                return look_up(args, named)
            except LookupError:
                pass
        return fallback(solve, *map(_untouched, args), **named)

    if not inspect.isclass(right):
        return lambda *args, **named: answer(right, *args, **named)
    if not issubclass(right, torch.nn.Module):
        return _keeping(right, answer)

    class Looks(right):  # type: ignore[misc]  # the right parameters, and another forward
        def forward(self, *args: Any) -> Any:
            return answer(super().forward, *args)

    return Looks


def _keeping(right: Any, answer: Answer) -> Any:
    """A cache that keeps what the answer gives in place of the right keys and values."""

    class Keeps:
        def __init__(self) -> None:
            self._right = right()
            self.keys = self.values = None

        def append(self, keys: Any, values: Any) -> None:
            self._right.append(keys, values)
            self.keys = answer(lambda *_: self._right.keys, keys)
            self.values = answer(lambda *_: self._right.values, values)

    return Keeps


def _untouched(arg: Any) -> Any:
    """A copy of a module or a cache, on which a right answer does not do the work for one without."""
    if isinstance(arg, torch.nn.Module):
        return copy.deepcopy(arg)
    return copy.copy(arg) if hasattr(arg, "append") else arg


def _kind(grader: HiddenTest) -> str:
    kinds = {"device": grader.probes_device, "public": grader.is_public, "property": grader.is_property}
    return next((kind for kind, is_so in kinds.items() if is_so), "hidden")


def _verdicts(graders: Sequence[HiddenTest], unit: str, exercise: str, name: str, answer: Any) -> dict[str, Verdict]:
    """Findings of these hidden tests on an answer, by name."""
    candidate = catalogue.Candidate(exercise, name, "", answer)
    examiner = Examiner({unit: {exercise: graders}})
    found = examiner.examine(unit, exercise, candidate_bench(unit, candidate), candidate) if graders else None
    return {verdict.test.name: verdict for verdict in (found.verdicts if found else ())}


def _print_findings(graders: HiddenTests, *, every: bool) -> None:
    print(json.dumps([one for unit in course.unit_names() for one in _findings(unit, graders[unit], every=every)]))


def _findings(unit: str, of_unit: Mapping[str, Sequence[HiddenTest]], *, every: bool) -> Iterator[dict[str, Any]]:
    for exercise in course.unit(unit).exercises:
        graders = of_unit[exercise.name]
        elsewhere = [grader for grader in graders if grader.probes_device]
        here = [grader for grader in graders if not grader.probes_device]
        for name, (goes_on, raises) in adversaries(unit, exercise.name, every=every):
            _raised_elsewhere.clear()
            alike = _verdicts(here, unit, exercise.name, name, raises)
            assert not _raised_elsewhere, f"a grader of {exercise.name} asks about devices, and is not marked so"
            for off_device, answer in (("as ever", goes_on), ("raises", raises)):
                found = alike | _verdicts(elsewhere, unit, exercise.name, name, answer)
                verdicts = [found[grader.name] for grader in graders]
                yield _finding(unit, exercise, f"{name}, another device: {off_device}", graders, verdicts)


def _finding(
    unit: str, exercise: course.Exercise, adversary: str, graders: Sequence[HiddenTest], verdicts: list[Verdict]
) -> dict[str, Any]:
    marked = scoring.score(exercise, verdicts, library_calls=set())
    kinds = {grader.name: _kind(grader) for grader in graders}
    passed = [verdict.test.name for verdict in verdicts if verdict.outcome == "passed"]
    everything = sum(grader.points for grader in graders)
    public = sum(g.points for g in graders if g.name in passed and g.is_public and not g.is_property)
    return {
        "unit": unit,
        "exercise": exercise.name,
        "adversary": adversary,
        "score": marked.score,
        "max_score": marked.max_score,
        "public": round(exercise.points * public / everything, 2),
        "passed": [(name, kinds[name]) for name in passed],
        "status": marked.status,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    _print_findings(collect(), every=sys.argv[1:] == ["every"])

"""Answers without the work: they know the public examples by heart, look right from outside, or do nothing.

`python -m tests.adversaries` prints, as JSON, what the graders of each exercise find in each of them.
"""

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from autograder import catalogue, course
from autograder.graders.collected import Grader, Graders, collected
from autograder.handout.data_file import read_data
from autograder.handout.names import EXAMPLES
from autograder.marking import scoring
from autograder.marking.examiner import Examiner, candidate_bench
from tests import RELEASE

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


def _each(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The change made to each float tensor; what is no tensor is gone."""
    if isinstance(value, tuple):
        return tuple(_each(one, change) for one in value)
    if not isinstance(value, torch.Tensor):
        return None
    return change(value) if value.is_floating_point() else torch.zeros_like(value)


def _by_heart(unit: str, exercise: str) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Looks a call up among the public examples; LookupError where it is none of them."""
    sys.path.insert(0, str(RELEASE / unit))
    check = importlib.import_module("attention_check")
    examples = read_data(RELEASE / unit / EXAMPLES)[exercise]["examples"]
    calls = [step for example in examples for step in example["steps"] if "result" in step]

    def look_up(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        for call in calls:
            known = tuple(check.as_value(one) for one in call["args"])
            if len(known) == len(args) and call.get("named", {}) == named and all(map(_equal, known, args)):
                return check.as_value(call["result"])
        raise LookupError

    return look_up


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and not other.is_meta:
        return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
    return type(one) is type(other) and not isinstance(one, torch.Tensor) and bool(one == other)


def adversaries(unit: str, exercise: str) -> Iterator[tuple[str, Any]]:
    """Each answer without work to the exercise, with and without the public examples, by name."""
    right = catalogue.solutions(unit)[exercise].answer
    by_heart = _by_heart(unit, exercise)
    for name, fallback in FALLBACKS.items():
        for knows in (False, True):
            for off_device in ("as ever", "raises"):
                said = f"{name}, {'public examples' if knows else 'nothing'} by heart, another device: {off_device}"
                yield said, _answer(right, fallback, by_heart if knows else None, off_device == "raises")


def _answer(right: Any, fallback: Answer, look_up: Any, raises_on_meta: bool) -> Any:
    def answer(solve: Answer, *args: Any, **named: Any) -> Any:
        if raises_on_meta and any(isinstance(one, torch.Tensor) and one.device.type == "meta" for one in args):
            raise RuntimeError("not here")
        if look_up is not None:
            try:
                return look_up(args, named)
            except LookupError:
                pass
        return fallback(solve, *args, **named)

    if not inspect.isclass(right):
        return lambda *args, **named: answer(right, *args, **named)

    class Looks(right):  # type: ignore[misc]  # the right parameters, and another forward
        def forward(self, *args: Any) -> Any:
            return answer(super().forward, *args)

    return Looks


def _kind(grader: Grader) -> str:
    kinds = {"device": grader.probes_device, "public": grader.is_public, "property": grader.is_property}
    return next((kind for kind, is_so in kinds.items() if is_so), "hidden")


def _print_findings(every: Graders) -> None:
    examiner = Examiner(every)
    found = []
    for unit in course.unit_names():
        for exercise in course.unit(unit).exercises:
            for name, answer in adversaries(unit, exercise.name):
                candidate = catalogue.Candidate(exercise.name, name, "", answer)
                finding = examiner.examine(unit, exercise.name, candidate_bench(unit, candidate), candidate)
                marked = scoring.mark(exercise, finding.verdicts, library_calls=set())
                graders = every[unit][exercise.name]
                kinds = {grader.name: _kind(grader) for grader in graders}
                passed = [v.grader.name for v in finding.verdicts if v.outcome == "passed"]
                everything = sum(grader.points for grader in graders)
                public = sum(g.points for g in graders if g.name in passed and g.is_public and not g.is_property)
                found.append(
                    {
                        "unit": unit,
                        "exercise": exercise.name,
                        "adversary": name,
                        "score": marked.score,
                        "max_score": marked.max_score,
                        "public": round(exercise.points * public / everything, 2),
                        "passed": [(name, kinds[name]) for name in passed],
                        "status": marked.status,
                    }
                )
    print(json.dumps(found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    _print_findings(collected())

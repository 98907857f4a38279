"""What is right on a telling case: every tensor of the solution and of the right answers, and the solution's steps."""

import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

import torch

from ..core.nesting import tensors_in
from ..core.tracing import Made, Run, Watch, made_ready, watched
from .case import TellingCase
from .reference import Reference, Right, all_before, distinct, is_mask, parts_of, same


def reference(case: TellingCase, solution: Any, others: Iterable[Any]) -> Reference | None:
    """What is right on this case; None where the solution makes no tensors. others: right answers."""
    run, names = _watched_solution(solution, case)
    result = [one.detach().double() for one in tensors_in(run.result)]
    if run.error is not None or not result:
        return None
    own = [Right(made.values, made.operator, n, names.get(n, "")) for n, made in enumerate(run.made)]
    rights = [*own]
    for answer in others:
        rights += [Right(made.values, made.operator) for made in _made_by(answer, case)]
    rights = distinct([*rights, *_by_hand(run.made), *_joined(result)])
    given = [arg for arg in case.arguments if isinstance(arg, torch.Tensor)] + list((case.parameters or {}).values())
    # First, so that what only copies them does not stand for them.
    rights = [*(Right(one.double(), "given") for one in given), *rights]
    before = all_before(run.made)
    everything = distinct([*rights, *parts_of(rights)])
    return Reference(case, result, everything, before, _inputs(own, run.made, everything), _scaled(own, given, before))


def _in_float64(case: TellingCase) -> tuple[tuple[Any, ...], Mapping[str, torch.Tensor] | None]:
    arguments = tuple(_double(arg) for arg in case.arguments)
    return arguments, case.parameters and {name: one.double() for name, one in case.parameters.items()}


def _double(arg: Any) -> Any:
    return arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg


def _made_by(answer: Any, case: TellingCase) -> list[Made]:
    file = inspect.getsourcefile(inspect.unwrap(answer)) or ""
    arguments, parameters = _in_float64(case)
    call = made_ready(answer, case.built, parameters, arguments, case.through)
    run = watched(call, Watch(lambda name: name == file, {}))
    return [] if run.error is not None else run.made


def _watched_solution(solution: Any, case: TellingCase) -> tuple[Run, dict[int, str]]:
    """The solution's run, and the names of its own variables for the tensors in it."""
    file = inspect.getsourcefile(solution) or ""
    watch, names = Watch(lambda name: name == file, {}), dict[int, str]()

    def look(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        for name, value in frame.f_locals.items():
            if id(value) in watch.of and isinstance(value, torch.Tensor):
                names.setdefault(watch.of[id(value)], name)
        return look

    arguments, parameters = _in_float64(case)
    before = sys.gettrace()
    sys.settrace(look)
    try:
        run = watched(made_ready(solution, case.built, parameters, arguments, case.through), watch)
    finally:
        sys.settrace(before)
    return run, names


def _inputs(own: list[Right], made: Sequence[Made], kept: list[Right]) -> dict[int, list[int]]:
    """The inputs of each tensor that are kept, and no masks or single numbers."""
    numbers = {right.number for right in kept}
    return {
        number: [n for n in one.inputs if n in numbers and own[n].values.numel() > 1 and not is_mask(own[n].values)]
        for number, one in enumerate(made)
    }


def _by_hand(made: Sequence[Made]) -> list[Right]:
    """What a softmax is made of, where one is written out."""
    found: list[Right] = []
    for one in made:
        if one.operator != "_softmax" or not one.inputs:
            continue
        scores = made[one.inputs[0]].values
        if scores.shape != one.values.shape:
            continue
        for shifted in (scores, scores - scores.amax(dim=-1, keepdim=True)):
            exponentials = shifted.exp()
            if bool(exponentials.isinf().any()):
                continue
            found += [
                Right(shifted, "sub"),
                Right(exponentials, "exp"),
                Right(exponentials.sum(dim=-1, keepdim=True), "sum"),
            ]
    return found


def _joined(result: list[torch.Tensor]) -> list[Right]:
    """Several results as one, to be split: queries, keys and values often come of one product."""
    leading = {one.shape[:-1] for one in result}
    return [Right(torch.cat(result, dim=-1), "cat")] if len(result) > 1 and len(leading) == 1 and all(leading) else []


def _scaled(own: list[Right], given: list[torch.Tensor], before: dict[int, frozenset[int]]) -> list[torch.Tensor]:
    """What the solution comes to scale, multiplied before that by the same number, or by its root."""
    found: list[torch.Tensor] = []
    for one in own:
        assert one.number is not None
        for earlier in before[one.number]:
            factor = _factor(own[earlier].values, one.values)
            if factor is None or not 0 < factor < 1:
                continue
            sources = [own[n].values for n in before[one.number]] + [one.double() for one in given]
            found += [
                source.squeeze() * by
                for source in sources
                for by in (factor, factor**0.5)
                if source.numel() > 1 and not bool((source == source.round()).all())
            ]
    return found


def _factor(one: torch.Tensor, other: torch.Tensor) -> float | None:
    """The number that this tensor was multiplied with to make the other."""
    if one.shape != other.shape or one.numel() < 2 or bool((one == one.flatten()[0]).all()):
        return None
    finite = one.isfinite() & (one != 0)
    ratio = (other / one)[finite]
    if not len(ratio) or not same(ratio, ratio[0].expand_as(ratio)):
        return None
    return float(ratio[0])

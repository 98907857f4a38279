"""Trace cases, on which an answer is traced to find its faulty line, and the tensors that are right on each of them.

All tensors that the solution and the alternative solutions compute are right. The names of the solution's variables
name its steps.

The cases may be shown to students, so they are never those of a hidden test. All dimensions of a case have different
sizes, so that a trace distinguishes them. The course lists the sizes in the module `telling_sizes` in the folder of its
hidden tests:

- `FUNCTIONS`: by exercise, the arguments of each call.
- `CLASSES`: by exercise, the arguments of the constructor and those of the call.
- `THROUGH`: for a class whose instances are not called, the method that is called, and the attributes read afterwards.
- `SILENT`: exercises for whose wrong values no line is reported, but only for lost aspects, such as a gradient.
- `UNTOLD`: by exercise, the values of `LocatedFault.kind` that are not reported because they often name a wrong line.

The line is reported for the first case on which an answer goes wrong.
"""

import inspect
import sys
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from types import FrameType
from typing import Any

import torch

from .. import catalogue
from ..core.arguments import tensors_in
from ..core.run_trace import Run, RunTracer, TracedCall, TracedTensor, trace_run
from ..course import content
from ..student_check.examples import decode_value
from ..tracing.reference import (
    Reference,
    RightTensor,
    TraceCase,
    find_ancestors,
    has_same_values,
    input_tensors,
    is_mask,
    slices_of,
    without_duplicates,
)

_DECIMALS = 3
_TABLE = "telling_sizes"


class Shape(tuple[int, ...]):
    """A shape in the table of traced calls (`hidden/telling_sizes`), for a tensor of normally distributed elements."""


class Weights(Shape):
    """A shape for a tensor of positive elements whose last dimension sums to 1."""


class Mask(Shape):
    """A shape for a boolean tensor."""


class Large(Shape):
    """A shape for a tensor with elements in the thousands."""


class Below(Shape):
    """A shape for a tensor with elements in the thousands, all negative."""


@cache
def trace_cases(unit: str, exercise: str) -> list[TraceCase]:
    """Return the trace cases of an exercise in the order in which they are tried; empty if the course lists none."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"to be shown: {unit} {exercise}".encode()))
    if not (content.place(content.HIDDEN) / f"{_TABLE}.py").is_file():
        return []
    sizes = content.module(f"{content.HIDDEN}.{_TABLE}")
    about: dict[str, Any] = {
        "is_silent": exercise in sizes.SILENT,
        "unreported": frozenset(sizes.UNTOLD.get(exercise, ())),
    }
    cases = [TraceCase(exercise, _draw(args, generator), **about) for args in sizes.FUNCTIONS.get(exercise, ())]
    for built, args in sizes.CLASSES.get(exercise, ()):
        named = _parameters(content.solutions(unit)[exercise], built)
        rules = {name: _rule(parameter, generator) for name, parameter in named.items()}
        parameters = {name: decode_value(rule) for name, rule in rules.items()}
        through = sizes.THROUGH.get(exercise, ())
        cases.append(TraceCase(exercise, _draw(args, generator), built, parameters, rules, through, **about))
    return cases


def _parameters(kind: type, built: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    if not issubclass(kind, torch.nn.Module):
        return {}
    with torch.random.fork_rng(devices=[]):
        return dict(kind(*built).named_parameters())


def _rule(parameter: torch.Tensor, generator: torch.Generator) -> dict[str, Any]:
    """Return a rule by which a parameter's elements are drawn; the release contains only the rule."""
    seed = int(torch.randint(2**31, (), generator=generator))
    return {"drawn": [seed, 0.0, 1.0], "shape": list(parameter.shape)}


def _draw(arg: Any, generator: torch.Generator) -> Any:
    match arg:
        case Mask():
            return torch.rand(tuple(arg), generator=generator) > 0.6
        case Shape():
            normal = torch.randn(tuple(arg), generator=generator, dtype=torch.float64)
            tensor = normal.round(decimals=_DECIMALS).float()
            match arg:
                case Weights():
                    return torch.softmax(tensor, dim=-1)
                case Large():
                    return tensor * 1000
                case Below():
                    return tensor.abs() * -1000 - 1000
            return tensor
        case tuple():
            return tuple(_draw(one, generator) for one in arg)
    return arg


def reference_trace(unit: str, case: TraceCase, *, without: str = "") -> Reference | None:
    """Return the tensors that are right on a trace case, from the solution and the alternative solutions.

    without: name of an alternative solution to leave out. Return None if the case is silent (see `trace_cases`), or if
    the solution fails or returns no tensors.
    """
    if case.is_silent:
        return None
    run, names = _trace_solution(catalogue.solutions(unit)[case.exercise].answer, case)
    result = [one.detach().double() for one in tensors_in(run.result)]
    if run.error is not None or not result:
        return None
    own = [RightTensor(made.values, made.operator, n, names.get(n, "")) for n, made in enumerate(run.made)]
    rights = [*own]
    for answer in catalogue.right_answers(unit).values():
        if answer.exercise == case.exercise and answer.name != without:
            rights += [RightTensor(made.values, made.operator) for made in _tensors_of(answer.answer, case)]
    rights = without_duplicates([*rights, *_softmax_by_hand(run.made), *_joined(result)])
    given = input_tensors(case)
    # Inputs come first, so that copies of inputs are dropped as duplicates.
    rights = [*(RightTensor(one, "given") for one in given), *rights]
    before = find_ancestors(run.made)
    everything = without_duplicates([*rights, *slices_of(rights)])
    scaled = _scaled_early(own, given, before)
    return Reference(case, result, everything, before, _inputs(own, run.made, everything), scaled)


def _call_in_float64(answer: Any, case: TraceCase) -> Callable[[], Any]:
    arguments = (
        arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg for arg in case.arguments
    )
    parameters = case.parameters and {name: one.double() for name, one in case.parameters.items()}
    return TracedCall(answer, tuple(arguments), case.built, parameters, case.through).run


def _tensors_of(answer: Any, case: TraceCase) -> list[TracedTensor]:
    """Return the tensors that an alternative solution computes on a case; empty if it fails."""
    file = inspect.getsourcefile(inspect.unwrap(answer)) or ""
    run = trace_run(_call_in_float64(answer, case), RunTracer(lambda name: name == file, {}))
    return [] if run.error is not None else run.made


def _trace_solution(solution: Any, case: TraceCase) -> tuple[Run, dict[int, str]]:
    """Return the solution's trace, and its variables' names by the number of the tensor that the variable holds."""
    file = inspect.getsourcefile(solution) or ""
    watch, names = RunTracer(lambda name: name == file, {}), dict[int, str]()

    def note_names(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        for name, value in frame.f_locals.items():
            if id(value) in watch.of and isinstance(value, torch.Tensor):
                names.setdefault(watch.of[id(value)], name)
        return note_names

    before = sys.gettrace()
    sys.settrace(note_names)
    try:
        return trace_run(_call_in_float64(solution, case), watch), names
    finally:
        sys.settrace(before)


def _inputs(own: list[RightTensor], made: Sequence[TracedTensor], stored: list[RightTensor]) -> dict[int, list[int]]:
    """Return, for each tensor of the solution, the numbers of the stored tensors that it is computed from.

    Masks and tensors of one element are left out.
    """
    numbers = {right.number for right in stored}
    return {
        number: [n for n in one.inputs if n in numbers and own[n].values.numel() > 1 and not is_mask(own[n].values)]
        for number, one in enumerate(made)
    }


def _softmax_by_hand(made: Sequence[TracedTensor]) -> list[RightTensor]:
    """Return the intermediate tensors of each softmax in a trace, as if it were computed by hand."""
    rights: list[RightTensor] = []
    for one in made:
        if one.operator != "_softmax" or not one.inputs:
            continue
        scores = made[one.inputs[0]].values
        if scores.shape != one.values.shape:
            continue
        for shifted in (scores, scores - scores.amax(dim=-1, keepdim=True)):
            exponentials = shifted.exp()
            if not bool(exponentials.isinf().any()):
                sums = exponentials.sum(dim=-1, keepdim=True)
                rights += [RightTensor(shifted, "sub"), RightTensor(exponentials, "exp"), RightTensor(sums, "sum")]
    return rights


def _joined(result: list[torch.Tensor]) -> list[RightTensor]:
    """Return several results concatenated into one tensor, from which an answer may have split them.

    Example: queries, keys and values. Empty if the results cannot be concatenated.
    """
    leading = {one.shape[:-1] for one in result}
    return (
        [RightTensor(torch.cat(result, dim=-1), "cat")]
        if len(result) > 1 and len(leading) == 1 and all(leading)
        else []
    )


def _scaled_early(
    own: list[RightTensor], given: list[torch.Tensor], before: dict[int, frozenset[int]]
) -> list[torch.Tensor]:
    """Return tensors that an answer may scale earlier than the solution does.

    These are the inputs of a tensor that the solution scales, multiplied by the same factor or by its root. given: the
    case's input tensors. before: by tensor number, the numbers of its ancestors.
    """
    scaled: list[torch.Tensor] = []
    for number, one in enumerate(own):
        for earlier in before[number]:
            factor = _constant_factor(own[earlier].values, one.values)
            if factor is None or not 0 < factor < 1:
                continue
            sources = [own[n].values for n in before[number]] + given
            scaled += [
                source.squeeze() * by
                for source in sources
                for by in (factor, factor**0.5)
                if source.numel() > 1 and not bool((source == source.round()).all())
            ]
    return scaled


def _constant_factor(one: torch.Tensor, other: torch.Tensor) -> float | None:
    """Return the constant factor between two tensors, other / one; None if there is no such factor."""
    if one.shape != other.shape or one.numel() < 2 or bool((one == one.flatten()[0]).all()):
        return None
    finite = one.isfinite() & (one != 0)
    ratio = (other / one)[finite]
    if not len(ratio) or not has_same_values(ratio, ratio[0].expand_as(ratio)):
        return None
    return float(ratio[0])

"""Reference traces: find the tensors that are right on a trace case, and encode them for the release.

All tensors that the solution and the alternative solutions compute are right. The names of the solution's variables
name its steps. With a reference trace, the student check finds a faulty line without a solution: the release contains
only the tensors' numbers, which `tracing.reference` reads, and no code.
"""

import base64
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from types import FrameType
from typing import Any

import torch

from .. import catalogue
from ..core.arguments import tensors_in
from ..core.run_trace import Run, RunTracer, TracedCall, TracedTensor, trace_run
from ..tracing.reference import (
    LARGEST_COUNT,
    SOFTMAX_STEPS,
    SPECIAL_COUNTS,
    Reference,
    RightTensor,
    TraceCase,
    comparable,
    find_ancestors,
    has_same_values,
    input_tensors,
    is_mask,
    read_tensor,
    slices_of,
    without_duplicates,
)
from .released_steps import as_json
from .trace_cases import trace_cases

_CLOSE = 2e-6
"""Largest relative error of an encoded tensor: a tenth of the tolerance for an answer's tensors."""
_DIGITS = 5e-5
"""Largest relative error of a packed element, of which students see four digits."""
_EQUAL = 1e-7
"""Largest relative difference of two tensors that count as the same tensor, computed in two ways."""
_HUGE = 1e6

Written = dict[str, Any]


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


def written_traces(unit: str, exercise: str) -> Written:
    """Return the trace cases of an exercise with their reference traces, as JSON for the release."""
    traces = [(case, reference_trace(unit, case)) for case in trace_cases(unit, exercise)]
    operators = sorted({right.operator for _, trace in traces if trace for right in trace.tensors})
    cases = [_Writer(trace, operators).case() if trace else {**_call(case), "silent": True} for case, trace in traces]
    return {"operators": operators, "cases": cases}


def _call(case: TraceCase) -> Written:
    call: Written = {"args": [as_json(arg) for arg in case.arguments]}
    if case.built is not None:
        call["built"] = list(case.built)
        call["parameters"] = {name: dict(rule) for name, rule in (case.rules or {}).items()}
    if case.through:
        call["through"] = list(case.through)
    if case.unreported:
        call["untold"] = sorted(case.unreported)
    return call


class _Writer:
    """Encodes one trace case and its reference trace as JSON.

    Each encoded tensor is decoded at once. A later tensor may be encoded as a function of it, and must then be computed
    from the numbers that the student check decodes.
    """

    def __init__(self, trace: Reference, operators: Sequence[str]) -> None:
        self._trace = trace
        self._operators = operators
        self._given = input_tensors(trace.case)
        self._read: list[RightTensor] = []

    def case(self) -> Written:
        rights = [written for one in self._trace.tensors if not one.is_slice and (written := self._right(one))]
        numbers = range(len(self._trace.ancestors))
        return {
            **_call(self._trace.case),
            "rights": rights,
            "result": [self._tensor(one) for one in self._trace.results],
            "before": [sorted(self._trace.ancestors[number]) for number in numbers],
            "inputs": [self._trace.inputs[number] for number in numbers],
            "scaled": self._scaled(),
        }

    def _right(self, right: RightTensor) -> Written | None:
        is_of_alternative = right.number is None and not right.step
        if is_of_alternative and any(_is_near(one.values, right.values, _EQUAL) for one in self._read):
            return None
        written = self._tensor(right.values)
        values = read_tensor(written, self._given, self._read)
        self._read.append(RightTensor(values, right.operator, right.number, right.step))
        written["operator"] = self._operators.index(right.operator)
        if right.number is not None:
            written["number"] = right.number
        if right.step:
            written["step"] = right.step
        return written

    def _tensor(self, values: torch.Tensor) -> Written:
        """Return the first short form that decodes to the tensor, or else its packed elements."""
        for written in self._short_forms(values):
            if _is_near(read_tensor(written, self._given, self._read), values, _CLOSE):
                return written
        return packed_numbers(values)

    def _short_forms(self, values: torch.Tensor) -> Iterator[Written]:
        """Yield short forms that may decode to a tensor, without its elements; most decode to another tensor."""
        if bool((values == values.round()).all()) and bool((values.abs() < _HUGE).all()):
            yield {"shape": list(values.shape), "whole": values.flatten().int().tolist()}
        sources: list[tuple[Written, torch.Tensor]] = [({"given": at}, one) for at, one in enumerate(self._given)]
        sources += [({"of": at}, one.values) for at, one in enumerate(self._read)]
        for source, tensor in sources:
            yield from ({**source, **form} for form in _rearranged(tensor, values))
        for source, tensor in sources:
            yield from ({**source, **form} for form in ways_to_fill(tensor, values))
            yield from ({**source, "by hand": way} for way in SOFTMAX_STEPS if tensor.dim() == values.dim())
        for source, tensor in sources:
            yield from ({**source, **form} for form in _parts(tensor, values))

    def _scaled(self) -> list[tuple[int, float]]:
        """Return each scaled tensor (see `_scaled_early`) as the number of an encoded tensor and a factor."""
        scaled: list[tuple[int, float]] = []
        for wanted in self._trace.prescaled:
            if any(_is_near(self._read[of].values.squeeze() * by, wanted, _CLOSE) for of, by in scaled):
                continue
            for of, one in enumerate(self._read):
                by = _factor(one.values, wanted)
                if by is not None and _is_near(one.values.squeeze() * by, wanted, _CLOSE):
                    scaled.append((of, by))
                    break
        return scaled


def _rearranged(source: torch.Tensor, values: torch.Tensor) -> Iterator[Written]:
    """Yield forms that describe a tensor as another tensor, `source`, reshaped, permuted or scaled."""
    factor = _factor(source, values)
    if factor is None:
        return
    form: Written = {} if source.shape == values.shape else {"shape": list(values.shape)}
    if abs(factor - 1) > _EQUAL:
        form["times"] = factor
    yield form
    for order in permutations(range(source.squeeze().dim())):
        yield {**form, "shape": list(values.shape), "order": list(order)}


def ways_to_fill(source: torch.Tensor, values: torch.Tensor) -> Iterator[Written]:
    """Yield the form that describes a tensor as `source` with one number filled in at some positions, if there is one.

    Example: scores that are masked with -inf.
    """
    if source.shape != values.shape or not values.numel():
        return
    first, second = comparable(source).flatten(), comparable(values).flatten()
    differs = (first - second).abs() > _CLOSE
    filled = second[differs]
    if len(filled) and bool((filled == filled[0]).all()):
        bits = int("".join("01"[one] for one in differs.tolist()), 2)
        number = float(values.flatten()[differs][0])
        yield {"filled": number if math.isfinite(number) else str(number), "hidden": f"{bits:x}"}


def _parts(source: torch.Tensor, values: torch.Tensor) -> Iterator[Written]:
    """Yield forms that describe a tensor as one of several equal parts of another tensor, `source`."""
    if not 1 < values.numel() < source.numel() or source.numel() % values.numel():
        return
    pieces, total = source.numel() // values.numel(), float(comparable(values).sum())
    for dim, size in enumerate(source.shape):
        for piece in range(pieces if size % pieces == 0 else 0):
            part = dim, piece * size // pieces, size // pieces
            if abs(float(comparable(source.narrow(*part)).sum()) - total) < 1e-4 * (1 + abs(total)):
                yield {"part": part, "shape": list(values.shape)}


def _is_near(one: torch.Tensor, other: torch.Tensor, close: float) -> bool:
    if one.shape != other.shape:
        return False
    first, second = comparable(one), comparable(other)
    return bool(((first - second).abs() <= close * (1 + second.abs())).all())


def _factor(one: torch.Tensor, other: torch.Tensor) -> float | None:
    """Return the factor for which the second tensor may be the first one scaled, with its elements in any order.

    Return None if the tensors' sums and norms allow no factor.
    """
    if one.numel() != other.numel() or not one.numel():
        return None
    (mine, my_length, my_sum, my_count), (its, its_length, its_sum, its_count) = _sums(one), _sums(other)
    if my_count != its_count:
        return None
    factor = its / mine if mine else 1.0
    if not math.isclose(my_length * factor, its_length, rel_tol=1e-4, abs_tol=1e-9):
        return None
    return -factor if abs(my_sum) > 1e-3 and my_sum * its_sum < 0 else factor


@lru_cache(maxsize=4096)
def _sums(values: torch.Tensor) -> tuple[float, float, float, int]:
    """Return the sum of the absolute elements, the Euclidean norm, the sum, and the number of finite elements."""
    numbers = values[values.isfinite()]
    return float(numbers.abs().sum()), float(numbers.norm()), float(numbers.sum()), len(numbers)


def packed_numbers(values: torch.Tensor) -> Written:
    """Encode a tensor's elements as text, with 24 bits each, or as float32 if 24 bits are too coarse.

    `tracing.reference.unpack_numbers` decodes them.
    """
    flat = values.flatten().double()
    is_number = flat.isfinite()
    numbers = flat[is_number]
    unit = float(numbers.abs().max()) / LARGEST_COUNT if len(numbers) and bool(numbers.any()) else 1.0
    counts = (flat.nan_to_num(0.0, 0.0, 0.0) / unit).round().long()
    near = torch.minimum(_DIGITS * numbers.abs(), _CLOSE * (1 + numbers.abs()) / 2)
    if bool(((counts * unit)[is_number] - numbers).abs().gt(near).any()):
        return {"shape": list(values.shape), "packed": _text(flat.float().view(torch.uint8))}
    for count, special in SPECIAL_COUNTS.items():
        counts[flat.isnan() if math.isnan(special) else flat == special] = count
    places = (counts + 2**23)[:, None] >> torch.tensor([0, 8, 16])
    return {"shape": list(values.shape), "unit": unit, "packed": _text((places & 255).to(torch.uint8))}


def _text(held: torch.Tensor) -> str:
    return base64.b85encode(bytes(held.flatten().tolist())).decode()

"""Make the data that are released with a unit, for several exercises in parallel.

The data of an exercise are cached under a digest of everything that they depend on. Signatures in them describe how
each misconception fails the examples, so that the student check can diagnose it. A misconception that only raises
errors of its own `raise`, or passes all examples, is left to grading.

With reference traces, the student check finds a faulty line without a solution: the release contains only the tensors'
numbers, which `tracing.reference` reads, and no code.
"""

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import permutations
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
from ..tracing.reference import (
    LARGEST_COUNT,
    SOFTMAX_STEPS,
    SPECIAL_COUNTS,
    Reference,
    RightTensor,
    TraceCase,
    comparable,
    input_tensors,
    read_tensor,
)
from .machine import parallel_map
from .public_examples import examples_of, verify_solutions
from .reference_trace import reference_trace, trace_cases
from .released_steps import NotReleasable, as_json

MOST_SENTENCES = 4
"""Misconceptions that the examples cannot tell apart are diagnosed together, up to this number."""
_DIGITS = 4
"""Decimals of a released sum; sums are compared with three."""

_CLOSE = 2e-6
"""Largest relative error of an encoded tensor: a tenth of the tolerance for an answer's tensors."""
_PACKED = 5e-5
"""Largest relative error of a packed element, of which students see four digits."""
_EQUAL = 1e-7
"""Largest relative difference of two tensors that count as the same tensor, computed in two ways."""
_HUGE = 1e6

Written = dict[str, Any]
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
    near = torch.minimum(_PACKED * numbers.abs(), _CLOSE * (1 + numbers.abs()) / 2)
    if bool(((counts * unit)[is_number] - numbers).abs().gt(near).any()):
        return {"shape": list(values.shape), "packed": _text(flat.float().view(torch.uint8))}
    for count, special in SPECIAL_COUNTS.items():
        counts[flat.isnan() if math.isnan(special) else flat == special] = count
    places = (counts + 2**23)[:, None] >> torch.tensor([0, 8, 16])
    return {"shape": list(values.shape), "unit": unit, "packed": _text((places & 255).to(torch.uint8))}


def _text(held: torch.Tensor) -> str:
    return base64.b85encode(bytes(held.flatten().tolist())).decode()

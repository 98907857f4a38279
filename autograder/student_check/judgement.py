"""The examples of the student check, judged as hidden tests are: see `core.judgement`."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..core import complaints, draws, one_head
from ..core.bench import seed_in_use
from ..core.comparison import Mismatch, OddForm, any_identical, assert_close, assert_equal, describe, identical
from ..core.cost import Cost, Most
from ..core.cost_limits import uncountable
from ..core.judgement import (
    assert_arrived,
    assert_cost,
    assert_devices,
    assert_dtype,
    assert_gradients,
    assert_parameters,
    assert_shapes,
    assert_unchanged,
    is_refusal,
    not_finite,
)
from ..core.lost_aspects import OF_COUNTING
from ..core.values import Expected, difference, expecting
from .bug_hunt import COMES_FIRST, caught
from .dropped import not_counted_out, weights_dropped
from .trial import Call, Trial
from .written_values import as_value

_USUAL = 1e-4
"""Tolerance for a result if the example has none of its own."""
_FAR = 1e6
"""Numbers from here on are written with a power of ten."""
_LONGEST = 200


def judged(names: Mapping[str, Any], example: Mapping[str, Any], trial: Trial | None = None) -> Trial:
    """Try an example. Raises Mismatch if it fails, StudentFault, and what the student's code raises."""
    aspects = set(example.get("looks_at", ["value"]))
    trial = trial or Trial(names)
    calls: list[Call] = []
    parameters: list[Any] = []
    odd: tuple[OddForm, Call | None] | None = None  # sizes of 1 can make any result right in another form
    seed_in_use(0)  # randomness starts at the same place each time
    for step in example["steps"]:
        if step["operation"] == "load" and "unbiased" in example and trial.lacks_biases(step):
            trial.begin_again()
            return judged(names, {**_without_variant(example), "steps": example["unbiased"]}, trial)
        result = _taken(trial, step)
        if isinstance(result, Call):
            calls.append(result)
            for judge in _judges(step, aspects):
                try:
                    judge(result)
                except OddForm as mismatch:
                    odd = odd or (mismatch, trial.now)
        elif step["operation"] == "parameters":
            parameters.append(result)
            if "parameters" in aspects:
                assert_parameters(result, step["right"])
    if odd:
        odd_form, trial.now = odd
        raise odd_form
    if "other parameters" in aspects and _all_alike(parameters):
        raise Mismatch(complaints.SAME_WEIGHTS)
    if "hunt" in aspects:
        for call in calls:
            _own_comes_first(names, call.step["hunt"])
            if problem := caught(call, names).problem:
                raise Mismatch(problem)
    if "steady" in aspects:
        _steady(calls)
    if "counted" in aspects:
        not_counted_out([call for call in calls if call.step["dropped"].get("lone")])
    if "anew" in aspects and any_identical([call.value for call in calls]):
        raise Mismatch("Two calls give exactly the same: nothing is dropped, or a seed is set, or a draw kept, inside.")
    if "varies" in aspects:
        _varies(calls)
    return trial


def _without_variant(example: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in example.items() if key != "unbiased"}


def _judges(step: Mapping[str, Any], aspects: set[str]) -> list[Callable[[Call], None]]:
    return [judge for aspect, (part, judge) in _JUDGES.items() if aspect in aspects and (part in step or not part)]


def _own_comes_first(names: Mapping[str, Any], hunt: Mapping[str, Any]) -> None:
    """Raise Mismatch unless the function whose mistake is hunted gives what is right in the notebook itself."""
    values = [one for one in hunt.get("examples", ()) if _looks_at_values(one)]
    for example in values:
        try:
            judged(names, {**example, "looks_at": ["value"]})
        except Exception as error:
            if hunt["of"] not in names or is_stub(error):
                raise Mismatch(f"Write {hunt['of']} first: {COMES_FIRST}") from None
            raise Mismatch(f"{hunt['of']} does not pass its check yet, so mend that first: {COMES_FIRST}") from None


def _looks_at_values(example: Mapping[str, Any]) -> bool:
    return "value" in example.get("looks_at", ["value"]) and not example.get("property")


def _taken(trial: Trial, step: Mapping[str, Any]) -> Any:
    """The step's result. What should be refused may raise only one of the errors that refuse."""
    if "refuses" not in step:
        return trial.take(step)
    try:
        trial.take(step)
    except Exception as error:
        if not is_refusal([kind.__name__ for kind in type(error).__mro__], step["refuses"]):
            raise
        return None
    raise Mismatch(complaints.RAISES_NOTHING)


def revealed(mismatch: Mismatch) -> str:
    """Return the mismatch's message with both values, because the examples are the student's to see."""
    if mismatch.compared is None:
        return str(mismatch)
    actual, expected = mismatch.compared
    if not isinstance(expected, tuple | Expected):
        return f"{str(mismatch).rstrip('.')}: it is {str(actual)[:_LONGEST]!r}; {expected!r} is expected."
    message = difference(actual, expected, describe, _first_position, what=mismatch.what)
    return f"{message} {mismatch.right}" if isinstance(mismatch, OddForm) else message or str(mismatch)


def _first_position(actual: torch.Tensor, expected: torch.Tensor, close: torch.Tensor) -> str:
    position = tuple((~close).nonzero()[0].tolist())
    own, right = (_number(one[position].item()) for one in (actual, expected))
    for digits in (6, 8, 10, 12):
        if own == right:
            own, right = (f"{one[position].item():.{digits}g}" for one in (actual, expected))
    values = f"{own} where {right} is expected."
    if not position:
        return f"is {values}"
    return f"differs in {int((~close).sum())} of {close.numel()} places; the first, {list(position)}, is {values}"


def _number(value: float) -> str:
    if not abs(value) < _FAR:
        return f"{value:.5g}"
    short = f"{value:.4f}".removesuffix(".0000")
    return "0" if short == "-0" else short


def is_stub(error: BaseException) -> bool:
    """Return whether this is what an exercise raises that is not written yet."""
    return isinstance(error, NotImplementedError) and not str(error)


def _value(call: Call) -> None:
    right, close = as_value(call.step["result"]), call.step.get("close", _USUAL)
    if isinstance(right, tuple | torch.Tensor):
        assert_close(call.value, expecting(right, close))
    else:
        assert_equal(call.value, right)


def _gradients(call: Call) -> None:
    close = call.step.get("close", _USUAL)
    gradients = [expecting(as_value(one), close) for one in call.step["gradients"]]
    named = {name: expecting(as_value(one), close) for name, one in call.step.get("parameter_gradients", {}).items()}
    assert_gradients(call.seen, gradients, named)


def _shapes(call: Call) -> None:
    assert_shapes(call.value, [one["shape"] for one in call.step["cotangents"]])


def _arrival(call: Call) -> None:
    _shapes(call)
    gradients = {complaints.argument(number): call.seen.gradients[number] for number in call.step["arrives_at"]}
    assert_arrived(gradients | {complaints.parameter(name): one for name, one in call.seen.parameter_gradients.items()})


def _finite(call: Call) -> None:
    _shapes(call)
    if faults := not_finite(call.seen):
        raise Mismatch(faults[0])


def _device(call: Call) -> None:
    if call.step["operation"] == "probe":
        assert_devices((), call.seen[0])
    else:
        assert_devices(call.seen.devices, "")


def _cost(call: Call) -> None:
    operations, *each = call.seen.cost
    assert_cost(Cost(operations, *(Most(*one) for one in each)), call.step["limits"], _at, is_counted=False)


def _countable(call: Call) -> None:
    operations, *each = call.seen.cost
    if problem := uncountable(Cost(operations, *(Most(*one) for one in each)), _at):
        raise Mismatch(problem, OF_COUNTING)


def _head(call: Call) -> None:
    check = one_head.assert_mixes if call.step["head"]["mixture"] else one_head.assert_attends
    for sentence in call.step["head"]["sentences"]:
        check(one_head.attended(sentence, call.value, *call.args))


_OF_DRAWS = {"support": draws.assert_support, "shares": draws.assert_shares, "ties": draws.assert_ties}


def _draws(call: Call) -> None:
    logits, temperature, top_k = call.args
    _OF_DRAWS[call.step["draws"]](draws.as_words(call.value, len(logits)), logits[0], temperature, top_k)


def _at(most: Most) -> str:
    return f" in line {most.line} of the cell" if most.line else ""


def _all_alike(parameters: list[Any]) -> bool:
    first, *others = parameters
    return bool(first) and all(
        one.keys() == first.keys() and all(identical(first[name], one[name]) for name in first) for one in others
    )


def _varies(calls: list[Call]) -> None:
    """Raise Mismatch if all calls of a kind give the same, of which some two may by chance."""
    for first in calls:
        if all(identical(first.value, one.value) for one in calls if one.step == first.step):
            raise Mismatch(draws.ALWAYS_THE_SAME)


def _steady(calls: list[Call]) -> None:
    """Wherever the right results of two calls are the same, the code's must be the same too."""
    first, *others = calls
    right = as_value(first.step["result"])
    for call in calls:
        if not isinstance(call.value, torch.Tensor):
            raise Mismatch(f"The result is {describe(call.value)}, not a tensor.")
        if call.value.shape != right.shape:
            raise Mismatch(f"The result has shape {tuple(call.value.shape)}; {tuple(right.shape)} is expected.")
    for call in others:
        stays = torch.isclose(right, as_value(call.step["result"]), rtol=1e-6, atol=1e-6)
        alike = torch.isclose(first.value.double(), call.value.double(), rtol=1e-5, atol=1e-5, equal_nan=True)
        if bool((stays & ~alike).any()):
            if bool(stays.all()):
                raise Mismatch("Two calls with the same input differ: is something drawn by chance in it?")
            token = (stays & ~alike).nonzero()[0, -2].item()
            raise Mismatch(complaints.changed_by_the_future(int(token)))


_JUDGES: dict[str, tuple[str, Callable[[Call], None]]] = {
    "value": ("result", _value),
    "gradients": ("gradients", _gradients),
    "arrival": ("arrives_at", _arrival),
    "finite": ("cotangents", _finite),
    "unchanged": ("", lambda call: assert_unchanged(getattr(call.seen, "changed", ()))),
    "dtype": ("dtype", lambda call: assert_dtype(call.value, getattr(torch, call.step["dtype"]))),
    "device": ("", _device),
    "dropped": ("dropped", weights_dropped),
    "head": ("head", _head),
    "draws": ("draws", _draws),
    "cost": ("limits", _cost),
    "countable": ("limits", _countable),
}
"""By aspect, the part of a step without which the aspect is not judged, and the judge."""

"""What is wrong with what a call showed, in a sentence: each example says what it looks at."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..compare.complaints import (
    RAISES_NOTHING,
    RESULT_NOT_FINITE,
    SAME_WEIGHTS,
    argument,
    changed_by_the_future,
    detached,
    not_finite,
    of_another_shape,
    of_devices,
    other_parameters,
    with_article,
    writes_into,
)
from ..compare.costs import complaint
from ..compare.values import difference, expecting, oddly_shaped
from ..sandbox.inside.cost import Most
from ..sandbox.inside.nesting import tensors_in
from ..sandbox.inside.seeding import seed_in_use
from .dropped import not_counted_out, weights_dropped
from .hunted import COMES_FIRST, caught
from .trial import Call, Step, Trial, Wrong
from .written_values import as_value

_USUAL = 1e-4
"""How close a result must come where an example does not say."""


_FAR = 1e6
"""Numbers from here on are written with a power of ten."""


def judged(names: Mapping[str, Any], example: Mapping[str, Any], trial: Trial | None = None) -> Trial:
    """Tries the example; raises Wrong where it fails, or whatever the code raises."""
    looks_at = set(example.get("looks_at", ["value"]))
    trial = trial or Trial(names)
    calls: list[Call] = []
    parameters: list[Any] = []
    odd: tuple[Wrong, Call | None] | None = None  # a size of 1 may make of anything the right numbers in an odd shape
    seed_in_use(0)  # randomness starts at the same place each time
    for step in example["steps"]:
        found = _taken(trial, step)
        if isinstance(found, Call):
            calls.append(found)
            for aspect, (part, judge) in _OF_A_CALL.items():
                if aspect in looks_at and (part in step or not part):
                    try:
                        judge(found)
                    except Wrong as wrong:
                        if not wrong.odd_shape:
                            raise
                        odd = odd or (wrong, trial.now)
        elif step["operation"] == "parameters":
            parameters.append(found)
            if "parameters" in looks_at:
                _parameters(found, step["right"])
    if odd:
        odd_one, trial.now = odd
        raise odd_one
    if "other parameters" in looks_at and _all_alike(parameters):
        raise Wrong(SAME_WEIGHTS)
    if "hunt" in looks_at:
        for call in calls:
            _own_comes_first(names, call.step["hunt"])
            if problem := caught(call, names).problem:
                raise Wrong(problem)
    if "steady" in looks_at:
        _steady(calls)
    if "counted" in looks_at:
        not_counted_out([call for call in calls if call.step["dropped"].get("lone")])
    if "anew" in looks_at and _any_alike([call.value for call in calls]):
        raise Wrong("Two calls give exactly the same: nothing is dropped, or a seed is set, or a draw kept, inside.")
    return trial


def _own_comes_first(names: Mapping[str, Any], hunt: Mapping[str, Any]) -> None:
    """Raises Wrong unless the function whose mistake is hunted gives what is right in the notebook itself."""
    values = [one for one in hunt.get("examples", ()) if _looks_at_values(one)]
    for example in values:
        try:
            judged(names, {**example, "looks_at": ["value"]})
        except Exception as error:
            if hunt["of"] not in names or is_stub(error):
                raise Wrong(f"Write {hunt['of']} first: {COMES_FIRST}") from None
            raise Wrong(f"{hunt['of']} does not pass its check yet, so mend that first: {COMES_FIRST}") from None


def _looks_at_values(example: Mapping[str, Any]) -> bool:
    return "value" in example.get("looks_at", ["value"]) and not example.get("property")


def _taken(trial: Trial, step: Step) -> Any:
    """The step; what should be refused may raise only one of the errors that say so."""
    if "refuses" not in step:
        return trial.take(step)
    try:
        trial.take(step)
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if not kinds & set(step["refuses"]) or is_stub(error):
            raise
        return None
    raise Wrong(RAISES_NOTHING)


def is_stub(error: BaseException) -> bool:
    """Whether this is what an exercise raises that is not written yet."""
    return isinstance(error, NotImplementedError) and not str(error)


def _value(call: Call) -> None:
    right, close = as_value(call.step["result"]), call.step.get("close", _USUAL)
    problem = difference_of(call.value, right, close)
    if problem:
        wrong = Wrong(problem)
        if isinstance(right, tuple | torch.Tensor) and oddly_shaped(call.value, expecting(right, close)):
            wrong = Wrong(f"{problem} Its numbers are right.")
            wrong.odd_shape = True
        raise wrong


def difference_of(actual: Any, expected: Any, close: float, what: str = "The result") -> str | None:
    """How two values differ, in a sentence; None where they do not."""
    if isinstance(expected, tuple | torch.Tensor):
        return difference(actual, expecting(expected, close), _called, _first_place, what=what)
    if isinstance(actual, dict) and isinstance(expected, dict):
        return _entries(actual, expected)
    if type(actual) is type(expected) and actual == expected:
        return None
    return f"{what} is {str(actual)[:200]!r}; {expected!r} is expected."


def _entries(actual: dict[Any, Any], expected: dict[Any, Any]) -> str | None:
    for key in expected:
        if key not in actual:
            return f"The result has no entry for {key!r}; {expected!r} is expected."
    for key, value in actual.items():
        if key not in expected:
            return f"The result has an entry for {str(key)[:60]!r}; {expected!r} is expected."
        if type(value) is not type(expected[key]) or value != expected[key]:
            return f"The result has {str(value)[:60]} for {key!r}; {expected!r} is expected."
    return None


def _first_place(actual: torch.Tensor, expected: torch.Tensor, close: torch.Tensor) -> str:
    place = tuple((~close).nonzero()[0].tolist())
    got, wanted = (_number(one[place].item()) for one in (actual, expected))
    for digits in (6, 8, 10, 12):
        if got == wanted:
            got, wanted = (f"{one[place].item():.{digits}g}" for one in (actual, expected))
    said = f"{got} where {wanted} is expected."
    if not place:
        return f"is {said}"
    return f"differs in {int((~close).sum())} of {close.numel()} places; the first, {list(place)}, is {said}"


def _number(value: float) -> str:
    if not abs(value) < _FAR:
        return f"{value:.5g}"
    short = f"{value:.4f}".removesuffix(".0000")
    return "0" if short == "-0" else short


def _called(value: Any) -> str:
    return "None" if value is None else with_article(type(value).__name__)


def _gradients(call: Call) -> None:
    close = call.step.get("close", _USUAL)
    right = [as_value(one) for one in call.step["gradients"]]
    named = {name: as_value(one) for name, one in call.step.get("parameter_gradients", {}).items()}
    pairs = [(argument(n), call.gradients[n], one) for n, one in enumerate(right)]
    pairs += [(f"`{name}`", call.parameter_gradients.get(name), one) for name, one in named.items()]
    for where, gradient, expected in pairs:
        if expected is None:
            continue
        if gradient is None:
            raise Wrong(detached(where))
        if problem := difference_of(gradient, expected, close, f"The gradient of {where}"):
            raise Wrong(problem)


def _fits(call: Call) -> None:
    """Raise Wrong if the results have other shapes than the gradients that flow back from them."""
    values = call.value if isinstance(call.value, tuple | list) else [call.value]
    if len(values) != len(call.step["cotangents"]):
        raise Wrong(of_another_shape(_called(call.value), call.step["cotangents"][0]["shape"]))
    for value, cotangent in zip(values, call.step["cotangents"], strict=True):
        is_tensor = isinstance(value, torch.Tensor)
        if not is_tensor or list(value.shape) != list(cotangent["shape"]):  # nothing could flow back from it
            found = f"a tensor of shape {tuple(value.shape)}" if is_tensor else _called(value)
            raise Wrong(of_another_shape(found, cotangent["shape"]))


def _arrives(call: Call) -> None:
    _fits(call)
    arrived = {argument(n): call.gradients[n] for n in call.step["arrives_at"]}
    arrived |= {f"`{name}`": gradient for name, gradient in call.parameter_gradients.items()}
    for where, gradient in arrived.items():
        if gradient is None:
            raise Wrong(detached(where))


def _finite(call: Call) -> None:
    _fits(call)
    if not all(bool(value.isfinite().all()) for value in tensors_in(call.value)):
        raise Wrong(RESULT_NOT_FINITE)
    found = {argument(number): gradient for number, gradient in enumerate(call.gradients)}
    found |= {f"`{name}`": gradient for name, gradient in call.parameter_gradients.items()}
    for where, gradient in found.items():
        if gradient is not None and not bool(gradient.isfinite().all()):
            raise Wrong(not_finite(where))


def _changed(call: Call) -> None:
    if call.changed:
        raise Wrong(writes_into(call.changed))


def _dtype(call: Call) -> None:
    values = call.value if isinstance(call.value, tuple | list) else [call.value]
    wanted = getattr(torch, call.step["dtype"])
    for value in values:
        if not isinstance(value, torch.Tensor):
            raise Wrong(f"The result is {_called(value)}, not a tensor.")
        if value.dtype != wanted:
            raise Wrong(f"The result is {value.dtype}; {wanted} is expected.")


def _device(call: Call) -> None:
    if complaint := of_devices(call.verdict):
        raise Wrong(complaint)


def _cost(call: Call) -> None:
    limits = call.step["limits"]
    if call.cost is not None and (found := complaint(call.cost, limits, _at)):
        raise Wrong(found)


def _at(most: Most) -> str:
    return f" in line {most.line} of the cell" if most.line else ""


def _parameters(found: Mapping[str, torch.Tensor], right: Mapping[str, list[int]]) -> None:
    shapes = {name: list(parameter.shape) for name, parameter in found.items()}
    if shapes != dict(right):
        raise Wrong(other_parameters(shapes))


def _all_alike(parameters: list[Any]) -> bool:
    first, *others = parameters
    return bool(first) and all(
        one.keys() == first.keys() and all(_identical(first[name], one[name]) for name in first) for one in others
    )


def _any_alike(values: list[Any]) -> bool:
    return any(_identical(one, other) for number, one in enumerate(values) for other in values[:number])


def _identical(one: Any, other: Any) -> bool:
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return both and one.dtype == other.dtype and torch.equal(one, other)


def _steady(calls: list[Call]) -> None:
    """Wherever the right results of two calls are the same, the code's must be the same too."""
    first, *others = calls
    right = as_value(first.step["result"])
    for call in calls:
        if not isinstance(call.value, torch.Tensor):
            raise Wrong(f"The result is {_called(call.value)}, not a tensor.")
        if call.value.shape != right.shape:
            raise Wrong(f"The result has shape {tuple(call.value.shape)}; {tuple(right.shape)} is expected.")
    for call in others:
        stays = torch.isclose(right, as_value(call.step["result"]), rtol=1e-6, atol=1e-6)
        alike = torch.isclose(first.value.double(), call.value.double(), rtol=1e-5, atol=1e-5, equal_nan=True)
        if bool((stays & ~alike).any()):
            if bool(stays.all()):
                raise Wrong("Two calls with the same input differ: is something drawn by chance in it?")
            token = (stays & ~alike).nonzero()[0, -2].item()
            raise Wrong(changed_by_the_future(int(token)))


_OF_A_CALL: dict[str, tuple[str, Callable[[Call], None]]] = {
    "value": ("result", _value),
    "gradients": ("gradients", _gradients),
    "arrival": ("arrives_at", _arrives),
    "finite": ("cotangents", _finite),
    "unchanged": ("", _changed),
    "dtype": ("dtype", _dtype),
    "device": ("", _device),
    "dropped": ("dropped", weights_dropped),
    "cost": ("limits", _cost),
}
"""By aspect, the part of a step without which it is not asked of that call, and who judges it."""

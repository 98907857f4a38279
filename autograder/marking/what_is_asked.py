"""What a grader looks at, found by showing it something else there: it complains, or does not look.

So a grader need not say it, and what the released check judges follows what marking judges.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import torch

from ..compare import GOLDEN, LARGE_LOGITS, TOLERANCE, Mismatch, Unproven
from ..core.bench import Operation
from ..core.cost import Cost, Most
from ..core.countable import OPERATOR
from ..core.device_probe import MIXED
from ..core.faults import Raised, StudentFault
from ..core.nesting import tensors_in
from ..core.observation import Observation
from ..core.operations import Call, MeasureCost, NamedParameters, ProbeDevice, is_bias
from ..student.backend import Backend

T = TypeVar("T")
Change = Callable[[Operation[Any], Any], Any]
Runs = Callable[[Callable[[Backend], Backend]], None]
"""Runs a grader on a right answer behind another backend; raises what the grader finds."""

BIASES = "biases"
"""Goes with the aspect of gradients where only those of biases are looked at."""
_DEAREST = Cost(1 << 62, *(Most(1 << 62),) * 3)
ERRORS = ("ValueError", "AssertionError", "KeyError", "TypeError", "IndexError", "RuntimeError", "NotImplementedError")


class _Changed:
    """A backend with some of its answers changed."""

    def __init__(self, backend: Backend, change: Change, error: str = "") -> None:
        self._backend = backend
        self._change = change
        self._error = error
        self.calls = 0

    def ask(self, operation: Operation[T]) -> T:
        try:
            given: T = self._change(operation, self._backend.ask(operation))
        except Raised:
            if not self._error:
                raise
            raise Raised(self._error, "", kinds=(self._error,)) from None
        return given


def complains(run: Runs, change: Change, error: str = "") -> bool:
    """Whether the grader finds fault with an answer that is right but for this change."""
    try:
        run(lambda backend: _Changed(backend, change, error))
    except Unproven:
        return False  # the values are other hidden tests' concern, unless all of those pass
    except (Mismatch, StudentFault):
        return True
    return False


def looks_at(run: Runs, calls: int) -> dict[str, Any]:
    """The aspects that the grader looks at, each with what goes with it. calls: how many it makes."""
    found: dict[str, Any] = {}
    if complains(run, _values(1.0)):
        found["value"] = _closeness(run)
    elif calls > 1 and complains(run, _last_alone(calls)):
        found["steady"] = True
    if complains(run, _dtype):
        found["dtype"] = True
    if complains(run, _observation(lambda seen: Observation(seen.value, [0], *_rest(seen)))):
        found["unchanged"] = True
    if complains(run, _observation(lambda seen: _with_gradients(seen, lambda one: None))):
        changed = _observation(lambda seen: _with_gradients(seen, lambda one: None if one is None else one * 1.5 + 1))
        found["gradients" if complains(run, changed) else "arrival"] = True
        if "gradients" in found and not complains(run, _observation(_of_biases_alone)):
            found["gradients"] = BIASES
    elif complains(run, _observation(lambda seen: _with_gradients(seen, _as_nan))):
        found["finite"] = True
    if complains(run, _parameters(lambda found: {f"x{name}": one for name, one in found.items()})):
        found["parameters"] = True
    if complains(run, _parameters(lambda found: {name: torch.zeros_like(one) for name, one in found.items()})):
        found["other parameters"] = True
    if complains(run, lambda operation, given: (MIXED, None) if isinstance(operation, ProbeDevice) else given):
        found["device"] = True
    if complains(run, _dearest):
        found["cost"] = True
    if complains(run, _uncountable):
        found["countable"] = True
    return found


def refusals(run: Runs) -> list[str]:
    """The errors by which a call may be refused."""
    return [error for error in ERRORS if not complains(run, lambda operation, given: given, error)]


def _closeness(run: Runs) -> float | None:
    """How close a result must come; None where that is as close as the arguments' dtype lets it."""
    if complains(run, _values(2.0, by_dtype=True)):
        return None
    closest = (close for close in (TOLERANCE[torch.float32], GOLDEN) if complains(run, _values(5 * close)))
    return next(closest, LARGE_LOGITS)


def _values(amount: float, *, by_dtype: bool = False) -> Change:
    def change(operation: Operation[Any], given: Any) -> Any:
        if not isinstance(operation, Call):
            return given
        step = amount * close_for(operation) if by_dtype else amount
        return Observation(_moved(given.value, step), given.changed, *_rest(given))

    return change


def close_for(call: Call) -> float:
    """How close results come to what is right where the arguments have this dtype."""
    floats = (arg.dtype for arg in tensors_in(call.arguments.positional) if arg.is_floating_point())
    return TOLERANCE[next(floats, torch.float32)]


def _last_alone(calls: int) -> Change:
    made = 0

    def change(operation: Operation[Any], given: Any) -> Any:
        nonlocal made
        made += isinstance(operation, Call)
        return _values(1.0)(operation, given) if made == calls else given

    return change


def _moved(value: Any, step: float) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_moved(one, step) for one in value)
    if not isinstance(value, torch.Tensor):
        return value if step < 1 else None
    if value.is_floating_point():
        return (value.double() + step * (1 + value.double().abs())).to(value.dtype)
    return value if step < 1 else value.logical_not() if value.dtype == torch.bool else value + 1


def _dtype(operation: Operation[Any], given: Any) -> Any:
    if not isinstance(operation, Call):
        return given
    return Observation(_converted(given.value), given.changed, *_rest(given))


def _converted(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_converted, value))
    if not isinstance(value, torch.Tensor):
        return value
    others = {torch.float32: torch.float64, torch.float64: torch.float32, torch.bool: torch.int64}
    return value.to(others.get(value.dtype, torch.int32 if not value.is_floating_point() else torch.float32))


def _observation(change: Callable[[Observation[Any]], Observation[Any]]) -> Change:
    return lambda operation, given: change(given) if isinstance(operation, Call) else given


def _rest(seen: Observation[Any]) -> tuple[Any, ...]:
    return seen.devices, seen.gradients, seen.parameter_gradients, seen.library_calls, seen.cost


def _with_gradients(seen: Observation[Any], change: Callable[[Any], Any]) -> Observation[Any]:
    parameters = {name: change(one) for name, one in (seen.parameter_gradients or {}).items()}
    gradients = [change(one) for one in seen.gradients or []]
    return Observation(seen.value, seen.changed, seen.devices, gradients, parameters, seen.library_calls, seen.cost)


def _of_biases_alone(seen: Observation[Any]) -> Observation[Any]:
    none = _with_gradients(seen, lambda one: None)
    biases = {name: one for name, one in (seen.parameter_gradients or {}).items() if is_bias(name)}
    parameters = {**(none.parameter_gradients or {}), **biases}
    return Observation(seen.value, seen.changed, seen.devices, none.gradients, parameters, seen.library_calls)


def _as_nan(gradient: torch.Tensor | None) -> torch.Tensor | None:
    return None if gradient is None else gradient + torch.nan


def _dearest(operation: Operation[Any], given: Any) -> Any:
    if not isinstance(operation, MeasureCost):
        return given
    return replace(given, cost=_DEAREST.packed())


def _uncountable(operation: Operation[Any], given: Any) -> Any:
    if not isinstance(operation, MeasureCost):
        return given
    return replace(given, cost=Cost(uncounted=Most(1, OPERATOR)).packed())


def _parameters(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Change:
    return lambda operation, given: change(given) if isinstance(operation, NamedParameters) else given

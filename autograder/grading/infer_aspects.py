"""Infer the aspects of an answer (values, gradients, dtype, ...) that a hidden test inspects.

The test is run on the solution with altered results. If it still passes after an aspect was altered, it does not
inspect that aspect. So a hidden test need not declare its aspects, and the released example inspects the same ones.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import torch

from ..core.arguments import map_nested, tensors_in
from ..core.bench import Operation
from ..core.comparison import GOLDEN, LARGE_LOGITS, TOLERANCE, Mismatch, Unproven
from ..core.cost import OPERATOR, Cost, Maximum
from ..core.device_probe import MIXED
from ..core.observation import Observation, Raised, StudentFault
from ..core.operations import Call, MeasureCost, NamedParameters, ProbeDevice, Read, is_bias
from ..graders.backend import Backend

T = TypeVar("T")
Change = Callable[[Operation[Any], Any], Any]
"""A function that returns an operation's result in altered form, given the operation and the result."""
Runs = Callable[[Callable[[Backend], Backend]], None]
"""A function that runs a hidden test on the solution, and raises what the test raises.

Its argument is a function that wraps the solution's backend.
"""

BIASES = "biases"
"""Value of the aspect `gradients` if a test inspects only the gradients of biases."""
ONLY = "only"
"""Key for the positions of the inspected results, if each call has several and a test does not inspect all."""
ATTRIBUTES = "attributes"
"""Key that is present if a test inspects attributes of instances, and no result of a call."""
_MOST_EXPENSIVE = Cost(1 << 62, *(Maximum(1 << 62),) * 3)
_UNCOUNTABLE = Cost(uncounted=Maximum(1, OPERATOR))
_ERRORS = ("ValueError", "AssertionError", "KeyError", "TypeError", "IndexError", "RuntimeError", "NotImplementedError")
_OTHER_DTYPE = {torch.float32: torch.float64, torch.float64: torch.float32, torch.bool: torch.int64}


class _Altered:
    """A backend that alters the results of another one, and the type of its exceptions."""

    def __init__(self, backend: Backend, change: Change, error: str) -> None:
        self._backend = backend
        self._change = change
        self._error = error

    def ask(self, operation: Operation[T]) -> T:
        try:
            result: T = self._change(operation, self._backend.ask(operation))
        except Raised:
            if not self._error:
                raise
            raise Raised(self._error, "", kinds=(self._error,)) from None
        return result


def fails(run: Runs, change: Change, error: str = "") -> bool:
    """Return whether a hidden test fails on the solution if its results are altered by `change`.

    error: also replace the type of each exception by this one, unless it is empty.
    """
    try:
        run(lambda backend: _Altered(backend, change, error))
    except Unproven:
        return False  # the values are inspected by other hidden tests
    except (Mismatch, StudentFault):
        return True
    return False


def infer_aspects(run: Runs, calls: int, results: int = 1, *, reads: bool = False) -> dict[str, Any]:
    """Return the aspects that a hidden test inspects, each with its details or True.

    calls: number of calls that the test makes. results: number of results of each call; 1 if it differs between calls.
    reads: True if some of the calls only read an attribute.
    """
    aspects: dict[str, Any] = {}
    if fails(run, _moved_values(1.0)):
        aspects["value"] = _closeness(run)
        inspected = [at for at in range(results) if results > 1 and fails(run, _moved_result(at))]
        if 0 < len(inspected) < results:
            aspects[ONLY] = inspected
        if reads and not fails(run, _moved_values(1.0, of_reads=False)):
            aspects[ATTRIBUTES] = True
    elif calls > 1 and fails(run, _last_call_moved(calls)):
        aspects["steady"] = True
    if fails(run, _of_gradients(lambda gradient: None)):
        is_inspected = fails(run, _of_gradients(lambda gradient: None if gradient is None else gradient * 1.5 + 1))
        aspects["gradients" if is_inspected else "arrival"] = True
        if is_inspected and not fails(run, _of_calls(_with_gradients_of_biases)):
            aspects["gradients"] = BIASES
    elif fails(run, _of_gradients(lambda gradient: None if gradient is None else gradient + torch.nan)):
        aspects["finite"] = True
    changes = {
        "dtype": _of_calls(lambda result: replace(result, value=_in_other_dtype(result.value))),
        "unchanged": _of_calls(lambda result: replace(result, changed=[0])),
        "parameters": _of_parameters(lambda name, parameter: (f"x{name}", parameter)),
        "other parameters": _of_parameters(lambda name, parameter: (name, torch.zeros_like(parameter))),
        "device": lambda operation, result: (MIXED, None) if isinstance(operation, ProbeDevice) else result,
        "cost": _of_cost(_MOST_EXPENSIVE),
        "countable": _of_cost(_UNCOUNTABLE),
    }
    return aspects | {aspect: True for aspect, change in changes.items() if fails(run, change)}


def accepted_errors(run: Runs) -> list[str]:
    """Return the names of the exception types with which, by a hidden test, a call may reject its arguments."""
    return [error for error in _ERRORS if not fails(run, lambda operation, result: result, error)]


def tolerance_of(call: Call) -> float:
    """Return the tolerance for the results of a call, by the dtype of its arguments."""
    floats = (arg.dtype for arg in tensors_in(call.arguments.positional) if arg.is_floating_point())
    return TOLERANCE[next(floats, torch.float32)]


def _closeness(run: Runs) -> float | None:
    """Return the tolerance with which a test compares values; None if it is `tolerance_of` each call."""
    if fails(run, _moved_values(2.0, in_tolerances=True)):
        return None
    closest = (close for close in (TOLERANCE[torch.float32], GOLDEN) if fails(run, _moved_values(5 * close)))
    return next(closest, LARGE_LOGITS)


def _moved_values(amount: float, *, in_tolerances: bool = False, of_reads: bool = True) -> Change:
    """Return a change that moves all values of results by an amount.

    in_tolerances: the amount is a multiple of each call's tolerance. of_reads: also move the values of attributes.
    """

    def change(operation: Operation[Any], result: Any) -> Any:
        if not isinstance(operation, Call) or (isinstance(operation, Read) and not of_reads):
            return result
        step = amount * tolerance_of(operation) if in_tolerances else amount
        return replace(result, value=_moved(result.value, step))

    return change


def _moved_result(position: int) -> Change:
    def change(operation: Operation[Any], result: Any) -> Any:
        if not isinstance(operation, Call):
            return result
        value = [_moved(one, 1.0) if at == position else one for at, one in enumerate(result.value)]
        return replace(result, value=tuple(value))

    return change


def _last_call_moved(calls: int) -> Change:
    made = 0

    def change(operation: Operation[Any], result: Any) -> Any:
        nonlocal made
        made += isinstance(operation, Call)
        return _moved_values(1.0)(operation, result) if made == calls else result

    return change


def _moved(value: Any, step: float) -> Any:
    def moved(one: Any) -> Any:
        if type(one) is int and isinstance(value, tuple):
            return one + 1 if step >= 1 else one  # the form of the whole result stays
        if not isinstance(one, torch.Tensor):
            return one if step < 1 else None
        if one.is_floating_point():
            return (one.double() + step * (1 + one.double().abs())).to(one.dtype)
        return one if step < 1 else one.logical_not() if one.dtype == torch.bool else one + 1

    return map_nested(value, moved)


def _in_other_dtype(value: Any) -> Any:
    def converted(one: Any) -> Any:
        if not isinstance(one, torch.Tensor):
            return one
        return one.to(_OTHER_DTYPE.get(one.dtype, torch.float32 if one.is_floating_point() else torch.int32))

    return map_nested(value, converted)


def _of_calls(change: Callable[[Observation[Any]], Observation[Any]]) -> Change:
    return lambda operation, result: change(result) if isinstance(operation, Call) else result


def _of_gradients(change: Callable[[torch.Tensor | None], torch.Tensor | None]) -> Change:
    def changed(result: Observation[Any]) -> Observation[Any]:
        parameters = {name: change(one) for name, one in (result.parameter_gradients or {}).items()}
        return replace(result, gradients=list(map(change, result.gradients or [])), parameter_gradients=parameters)

    return _of_calls(changed)


def _with_gradients_of_biases(result: Observation[Any]) -> Observation[Any]:
    gradients = {name: one if is_bias(name) else None for name, one in (result.parameter_gradients or {}).items()}
    return replace(result, gradients=[None] * len(result.gradients or []), parameter_gradients=gradients)


def _of_parameters(change: Callable[[str, torch.Tensor], tuple[str, torch.Tensor]]) -> Change:
    def changed(operation: Operation[Any], result: Any) -> Any:
        if not isinstance(operation, NamedParameters):
            return result
        return dict(change(name, parameter) for name, parameter in result.items())

    return changed


def _of_cost(cost: Cost) -> Change:
    return lambda operation, result: (
        replace(result, cost=cost.packed()) if isinstance(operation, MeasureCost) else result
    )

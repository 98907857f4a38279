"""Assertions that hidden tests of many exercises share. Each raises Mismatch if it does not hold."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import torch

from ..core import complaints
from ..core.arguments import map_nested, tensors_in
from ..core.comparison import LARGE_LOGITS, Mismatch, OddForm, Unproven, assert_close, describe, largest_size
from ..core.comparison import row as row
from ..core.comparison import rows as rows
from ..core.cost import Limits, Maximum
from ..core.judgement import assert_arrived as assert_arrived
from ..core.judgement import (
    assert_cost,
    assert_devices,
    assert_gradients,
    assert_parameters,
    assert_shapes,
    is_refusal,
    not_finite,
)
from ..core.judgement import assert_dtype as assert_dtype
from ..core.judgement import assert_gradient as assert_gradient
from ..core.judgement import assert_unchanged as assert_unchanged
from ..core.observation import CELL_PREFIX, Observation, Raised, StudentFault
from ..core.operations import is_bias
from .proxy import CallableProxy, Cotangent, InstanceProxy, StudentProxy

REFUSALS = frozenset({"ValueError", "AssertionError"})
NO_ROOM = REFUSALS | {"RuntimeError", "IndexError"}
"""Names of the exceptions that code with a maximum number of tokens may raise, for `StudentProxy.refusing`."""

_PROOF = 1e-3
"""Tolerance for the value of a call in a conditional test; the tests of values are stricter."""

_ROUNDINGS = 16
"""Rounding errors by which inputs are changed to find out how much these change the result."""
_TIMES_ROUNDING = 3
"""Tolerance for results that rounding errors change: a multiple of this change."""

T = TypeVar("T")


def transplant(reference: Any, student: CallableProxy, *, exactly: bool = False) -> Any:
    """Copy the reference's parameters into the student's instance, if it is one, and return the reference.

    If a student's layer lacks a bias, the reference's bias becomes zero, unless `exactly`: then all names must be
    equal.
    """
    if isinstance(student, InstanceProxy):
        values = reference.named_parameters()
        if not exactly and any(map(is_bias, values)):
            own = student.named_parameters()
            values = {
                name: torch.zeros_like(value) if is_bias(name) and name not in own else value
                for name, value in values.items()
            }
            reference.load_parameters(values)
        student.load_parameters(values, exactly=exactly)
    return reference


def with_parameters_of(student: CallableProxy, reference: CallableProxy) -> CallableProxy:
    """Return the reference in evaluation mode, with the student's parameters; return a function unchanged.

    Raises Unusable if the names are not the same.
    """
    if isinstance(student, InstanceProxy) and isinstance(reference, InstanceProxy):
        reference.load_parameters(student.named_parameters(), exactly=True)
        reference.eval()
    return reference


def in_each(cases: Iterable[T], check: Callable[[T], None]) -> None:
    """Run a check on all cases, then raise the first failure, if any. Later cases help the diagnosis."""
    faults: list[Mismatch | StudentFault] = []
    for case in cases:
        try:
            check(case)
        except (Mismatch, StudentFault) as fault:
            faults.append(fault)
    if faults:
        raise next((fault for fault in faults if not isinstance(fault, OddForm)), faults[0])


def in_both_modes(student: CallableProxy) -> Iterator[None]:
    """Yield once in training mode and once in evaluation mode of an instance; only once for a function."""
    yield
    if isinstance(student, InstanceProxy):
        student.eval()
        yield
        student.train()


def in_float64(student: CallableProxy) -> CallableProxy:
    """Convert an instance's parameters to float64, and return it; return a function unchanged."""
    return student.to(torch.float64) if isinstance(student, InstanceProxy) else student


def assert_same_gradients(student: CallableProxy, reference: CallableProxy, *args: Any, cotangent: Cotangent) -> None:
    """Raise Mismatch unless all gradients are the reference's, in training and in evaluation."""
    right = reference.observe(*args, cotangent=cotangent)
    for _ in in_both_modes(student):
        assert_gradients_of(student.observe(*args, cotangent=cotangent), right)


def assert_gradients_of(seen: Observation[Any], right: Observation[Any]) -> None:
    """Raise Mismatch unless an observation has the right result and right gradients of all inputs and parameters."""
    assert_close(seen.value, right.value)
    assert_gradients(seen, right.gradients, right.parameter_gradients)


def assert_biases_learn(student: CallableProxy, reference: CallableProxy, *args: Any, cotangent: Cotangent) -> None:
    """Raise Mismatch unless the gradient of each bias is the reference's."""
    right = reference.observe(*args, cotangent=cotangent).parameter_gradients
    seen = student.observe(*args, cotangent=cotangent).parameter_gradients
    for name in filter(is_bias, right):
        assert_gradient(seen.get(name), right[name], complaints.parameter(name), right.values())


def assert_right_where_large(
    student: StudentProxy,
    own: CallableProxy,
    reference: CallableProxy,
    *args: Any,
    check: Callable[..., None] = assert_close,
) -> None:
    """Raise Mismatch unless, for scores too large for exp, the result is right and no gradient is NaN or infinite.

    The gradients' values are not tested, because those of a softmax near 0 and 1 are rounding errors. If the largest
    two scores of a row are nearly equal, rounding errors change the result, too. Then the tolerance is larger.
    """
    right = reference(*args)
    tolerance = max(LARGE_LOGITS, _TIMES_ROUNDING * rounding_error(reference, *args))
    check(own(*args), right, tolerance=tolerance)
    assert_finite(student, own, *args, cotangent=torch.ones_like(right.value, dtype=torch.float32))


def rounding_error(reference: CallableProxy, *args: Any) -> float:
    """Return by how much the right result changes if the inputs change by rounding errors of several operations.

    The change of an element is relative to 1 + its size, or that of the result's largest element: see `right_elements`.
    """

    def rounded(arg: Any) -> Any:
        if not isinstance(arg, torch.Tensor) or not arg.is_floating_point():
            return arg
        signs = torch.cos(2.399963 * torch.arange(arg.numel(), dtype=torch.float64)).sign()  # without a pattern
        return arg.double() * (1 + _ROUNDINGS * torch.finfo(torch.float32).eps * signs.reshape(arg.shape))

    right = reference(*args).value
    other = reference(*(map_nested(arg, rounded) for arg in args)).value
    changes = (right - other).abs() / (1 + right.abs().clamp(min=largest_size(right)))
    changes = changes[right.isfinite() & other.isfinite()]
    return float(changes.max()) if changes.numel() else 0.0


def assert_finite(student: StudentProxy, own: CallableProxy, *args: Any, cotangent: torch.Tensor) -> None:
    """Raise Mismatch if the result or a gradient has NaN or infinite elements. cotangent: has the result's shape."""
    with student.by_chance() as note:
        seen = own.observe(*args, cotangent=cotangent)
        assert_shapes(seen.value, [cotangent.shape])
        faults = not_finite(seen)
        note(faults)
    if faults:
        raise Mismatch(faults[0])


def assert_gradients_arrive(
    student: StudentProxy, own: CallableProxy, x: torch.Tensor, *, layers: Iterable[str], width: int
) -> None:
    """Raise Mismatch unless gradients reach the input and these layers' weights.

    x: (..., d_in). width: size of the result's last dimension.
    """
    shape = (*x.shape[:-1], width)
    with student.by_chance() as note:
        seen = own.observe(x, cotangent=torch.ones(shape))
        assert_shapes(seen.value, [shape])
        weights = {name: f"{name}.weight" for name in layers}
        if nameless := [weight for weight in weights.values() if weight not in seen.parameter_gradients]:
            raise Mismatch(complaints.no_parameter(nameless[0]))
        arrived = {complaints.INPUT: seen.gradients[0]}
        arrived |= {complaints.parameter(weight): seen.parameter_gradients[weight] for weight in weights.values()}
        note([name for name, gradient in arrived.items() if gradient is None])
    assert_arrived(arrived)


def assert_proven(found: Any, right: Any, check: Callable[..., None] = assert_close) -> None:
    """Raise Unproven unless the value returned by the call of a conditional test is right."""
    try:
        check(found, right, tolerance=_PROOF)
    except Mismatch as wrong:
        raise Unproven(str(wrong)) from None


def assert_returns_right(
    found: Any, student: CallableProxy, reference: CallableProxy, *args: Any, check: Callable[..., None] = assert_close
) -> None:
    """Raise Unproven unless the value returned by the call of a conditional test equals the reference's.

    The reference gets the student's parameters. If their names differ, nothing is compared; other hidden tests report
    that.
    """
    with suppress(StudentFault):
        assert_proven(found, with_parameters_of(student, reference)(*args), check)


def assert_gives_dtype(student: CallableProxy, reference: CallableProxy, dtype: torch.dtype, *args: Any) -> None:
    """Raise Mismatch unless the result has this dtype; Unproven unless it is right."""
    assert_dtype(found := student(*args), dtype)
    assert_returns_right(found, student, reference, *args)


def assert_dtype_kept(student: CallableProxy, reference: CallableProxy, *args: Any, check: Callable[..., None]) -> None:
    """Raise Mismatch unless the result has the inputs' dtype; Unproven unless it is right."""
    for dtype in (next(tensors_in(args)).dtype, torch.float32):
        given = in_dtype(args, dtype)
        assert_dtype(found := student(*given), dtype)
        assert_returns_right(found, student, reference, *given, check=check)


def in_dtype(args: tuple[Any, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    """Convert all float tensors of arguments, also in lists and tuples, to another dtype."""

    def change(one: Any) -> Any:
        return one.to(dtype) if isinstance(one, torch.Tensor) and one.is_floating_point() else one

    return tuple(map_nested(arg, change) for arg in args)


def assert_raises(type_name: str, student: CallableProxy, *args: Any) -> None:
    """Raise Mismatch unless the call raises an exception of this type. A stub's NotImplementedError does not count."""
    try:
        value = student(*args)
    except Raised as raised:
        if type_name not in raised.kinds or type_name == "NotImplementedError":
            raise
    else:
        raise Mismatch(f"It returns {describe(value)} and raises nothing.")


def assert_refuses(
    student: StudentProxy, ask: Callable[..., Any], *args: Any, errors: frozenset[str] = REFUSALS
) -> None:
    """Raise Mismatch unless the call raises one of these errors, by default those of `raise ValueError` and `assert`.

    Other errors are accidents, and a stub's NotImplementedError does not count although it is a RuntimeError.
    """
    try:
        with student.refusing(errors):
            ask(*args)
    except Raised as raised:
        if not is_refusal(raised.kinds, list(errors)):
            raise
    else:
        raise Mismatch(complaints.RAISES_NOTHING)


def assert_parameter_shapes(student: InstanceProxy, expected: dict[str, tuple[int, ...]]) -> None:
    """Raise Mismatch unless the instance has exactly the parameters of these names and shapes."""
    assert_parameters(student.named_parameters(), expected)


def assert_costs_no_more(
    student: CallableProxy,
    limits: Limits,
    right: Any,
    *args: Any,
    once: bool = False,
    is_counted: bool = True,
    check: Callable[..., None] = assert_close,
) -> None:
    """Raise Mismatch unless the call returns the right result within these limits of cost: see `core.cost`.

    right: the reference's result. once: lists and tuples are passed as generators. is_counted: true if only the count
    decides, so that an uncountable call is a mismatch; false if the cost is also measured from outside.
    """
    found = student.measured(*args, limits=limits, once=once)
    check(found.value, right)
    assert_cost(found.cost, limits, _at, is_counted=is_counted)


def _at(most: Maximum) -> str:
    cell = most.file.removeprefix(CELL_PREFIX)
    return f" in line {most.line} of the cell `{cell}`" if most.line else ""


def assert_follows_device(
    student: CallableProxy,
    *args: Any,
    reference: CallableProxy | None = None,
    check: Callable[..., None] = assert_close,
) -> None:
    """Raise Mismatch unless, with inputs on another device, all tensors and the result are on that device.

    reference: the right code; None if results are random. An instance's result is compared in evaluation mode, with the
    parameters that it was built with.
    """
    found = None
    for _ in in_both_modes(student):
        found = _assert_follows_device(student, *args)
    if reference is None:
        return

    assert_returns_right(found, student, reference, *args, check=check)


def _assert_follows_device(student: CallableProxy, *args: Any) -> Any:
    observed = student.observe(*args)
    assert_devices(observed.devices, "")
    try:
        verdict, value = student.probe_device(*args)
    except Raised as raised:
        raise Mismatch(f"The code runs on the CPU, but fails if the inputs are on another device. {raised}") from None
    assert_devices((), verdict)
    return value


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call in this thread.

    The clock of the process may be coarse: if a timer of CPU time is set, it advances in steps of milliseconds.
    """
    began = time.thread_time()
    call()
    return time.thread_time() - began


def assert_takes_at_most(most: float, measure: Callable[[], float], complaint: str) -> None:
    """Raise Mismatch if the code's time, measured twice, exceeds a limit both times. Twice, because machines are busy.

    most: the limit, as a multiple of the reference's time. measure: returns the code's time as this multiple.
    complaint: the message, with `{}` for the multiple.
    """
    times = measure()
    if times > most and (times := min(times, measure())) > most:
        raise Mismatch(complaint.format(times))

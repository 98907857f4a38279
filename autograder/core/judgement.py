"""Judgement of what a call showed: hidden tests and the student check both judge by these functions.

Each raises Mismatch, whose message reveals no expected value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from . import complaints
from .arguments import tensors_in
from .comparison import Mismatch, assert_close, describe
from .cost import Cost
from .cost_limits import At, Limits, complaint, uncountable
from .device_probe import BY_NUMBERS, ELSEWHERE, MIXED
from .lost_aspects import OF_COUNTING, OF_DEVICE, OF_DTYPE, OF_GRADIENT, OF_WRITING
from .observation import Observation
from .operations import is_bias


def assert_gradients(seen: Observation[Any], gradients: Sequence[Any], parameter_gradients: Mapping[str, Any]) -> None:
    """The gradients are the expected ones. None: any gradient is right. A bias that the code lacks needs none."""
    for number, expected in enumerate(gradients):
        if expected is not None:
            assert_gradient(seen.gradients[number], expected, complaints.argument(number))
    for name, expected in parameter_gradients.items():
        if not is_bias(name) or name in seen.parameter_gradients:
            assert_gradient(seen.parameter_gradients.get(name), expected, complaints.parameter(name))


def assert_gradient(gradient: Any, expected: Any, where: complaints.Part) -> None:
    """A gradient arrived and is the expected one. where: the tensor that it belongs to."""
    assert_arrived({where: gradient})
    try:
        assert_close(gradient, expected, what=f"The gradient of {where}")
    except Mismatch as wrong:
        wrong.aspect = OF_GRADIENT
        raise


def assert_shapes(value: Any, shapes: Sequence[Sequence[int]]) -> None:
    """The results are tensors of these shapes, so that gradients can flow back from them."""
    results = value if isinstance(value, tuple | list) else [value]
    if len(results) != len(shapes):
        raise Mismatch(complaints.of_another_shape(describe(value), shapes[0]))
    for result, shape in zip(results, shapes, strict=True):
        if not isinstance(result, torch.Tensor) or tuple(result.shape) != tuple(shape):
            raise Mismatch(complaints.of_another_shape(describe(result), shape))


def assert_arrived(gradients: Mapping[complaints.Part, Any]) -> None:
    """A gradient arrived everywhere. gradients: by the tensor that each belongs to."""
    for where, gradient in gradients.items():
        if gradient is None:
            raise Mismatch(complaints.detached(where), OF_GRADIENT, [where.key] if where.key else [])


def not_finite(seen: Observation[Any]) -> list[str]:
    """Return a message for the result, and for each gradient, that has NaN or infinite values."""
    gradients = {complaints.argument(number): gradient for number, gradient in enumerate(seen.gradients)}
    gradients |= {complaints.parameter(name): gradient for name, gradient in seen.parameter_gradients.items()}
    is_finite = all(bool(value.isfinite().all()) for value in tensors_in(seen.value))
    messages = [] if is_finite else [complaints.RESULT_NOT_FINITE]
    return messages + [
        complaints.not_finite(where)
        for where, gradient in gradients.items()
        if isinstance(gradient, torch.Tensor) and not bool(gradient.isfinite().all())
    ]


def assert_unchanged(changed: Sequence[int]) -> None:
    """The call wrote into none of its arguments. changed: the positions of those that it wrote into."""
    if changed:
        raise Mismatch(complaints.writes_into(changed), OF_WRITING, [str(changed[0])])


def assert_dtype(value: Any, dtype: torch.dtype) -> None:
    """The value is a tensor of this dtype, or a tuple or list of such tensors."""
    if isinstance(value, tuple | list):
        for item in value:
            assert_dtype(item, dtype)
        return
    if not isinstance(value, torch.Tensor):
        raise Mismatch(f"The result is {describe(value)}, not a tensor.")
    if value.dtype != dtype:
        dtypes = [str(one).removeprefix("torch.") for one in (value.dtype, dtype)]
        raise Mismatch(f"The result is {value.dtype}; {dtype} is expected.", OF_DTYPE, dtypes)


def assert_devices(devices: Sequence[str], verdict: str) -> None:
    """The code follows its inputs to another device. devices: of a call's results. verdict: of a device probe."""
    if len(devices) > 1:
        raise Mismatch("The outputs are on different devices.", OF_DEVICE)
    if found := complaints.of_devices(verdict):
        kind = verdict.removesuffix(BY_NUMBERS)
        raise Mismatch(found, OF_DEVICE, [kind] if kind in (MIXED, ELSEWHERE) else [])


def is_refusal(kinds: Sequence[str], errors: Sequence[str]) -> bool:
    """Return whether an exception refuses an input. kinds: the names of its classes. errors: those that refuse.

    A stub's NotImplementedError does not, although it is a RuntimeError.
    """
    return bool(set(errors) & set(kinds)) and "NotImplementedError" not in kinds


def assert_parameters(parameters: Mapping[str, torch.Tensor], shapes: Mapping[str, Sequence[int]]) -> None:
    """An instance has parameters of these names and shapes, and no others."""
    found = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    if found != {name: tuple(shape) for name, shape in shapes.items()}:
        raise Mismatch(complaints.other_parameters(found))


def assert_cost(cost: Cost, limits: Limits, at: At, *, is_counted: bool = True) -> None:
    """The cost stays within the limits.

    is_counted: whether only the count decides, so that a call whose cost cannot be counted is a mismatch. Only the
    count can decide on operations.
    """
    if found := complaint(cost, limits, at):
        raise Mismatch(found)
    if (is_counted or "operations" in limits) and (why := uncountable(cost, at)):
        raise Mismatch(why, OF_COUNTING)

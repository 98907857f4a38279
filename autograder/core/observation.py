"""Observation of a call of a student's code, and the gradients that flow back through the call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Generic, TypeVar

import torch

from .arguments import tensors_in
from .faults import student_code

V = TypeVar("V")


@dataclass
class Observation(Generic[V]):
    """The result of a call and its effects. On a bench `gradients` is a list and `parameter_gradients` a dict."""

    value: V
    changed: list[int] = field(default_factory=list)
    """Positions of the arguments that the call wrote into; tensors are never passed by name."""
    devices: list[str] = field(default_factory=list)
    """Device types of the output tensors if there are several, else empty."""
    gradients: Any = None
    """Gradients, one for each argument; None if none arrived or the argument is not a float tensor."""
    parameter_gradients: Any = None
    """Gradients by the parameters' names."""
    library_calls: list[str] = field(default_factory=list)
    """The libraries that ran. The worker adds them after packing, because packing may run student code."""
    cost: Any = None
    """Cost of the call in the form of `cost.Cost.packed`; only `MeasureCost` counts it."""
    cpu_seconds: float = 0.0
    """The CPU time of the call, measured outside the worker; only `TimedCall` is measured."""

    def mapped(self, change: Callable[[Any], Any]) -> "Observation[Any]":
        """Return the observation with `change` applied to the value, the gradients and the cost, in this order."""
        return Observation(
            change(self.value),
            self.changed,
            self.devices,
            change(self.gradients),
            change(self.parameter_gradients),
            self.library_calls,
            change(self.cost),
            self.cpu_seconds,
        )


Gradient = torch.Tensor | None


def compute_gradients(
    value: Any, cotangents: Sequence[torch.Tensor], inputs: Sequence[Any], parameters: Mapping[str, torch.Tensor]
) -> tuple[list[Gradient], dict[str, Gradient]]:
    """Return the gradients of each input and each parameter, given the gradients of a loss with respect to each output.

    A gradient is None if none arrived. All are None if the outputs have other shapes than the cotangents.
    """
    outputs = list(value) if isinstance(value, tuple | list) else [value]
    pairs = list(zip(outputs, cotangents, strict=False))
    reached = []
    if all(isinstance(output, torch.Tensor) and output.shape == cotangent.shape for output, cotangent in pairs):
        reached = [
            (output, cotangent.to(output)) for output, cotangent in pairs if output.requires_grad and not output.is_meta
        ]
    with student_code():
        # Losses are single elements: for an output with a cotangent PyTorch would import sympy in each process.
        losses = [(output * cotangent).real.sum() for output, cotangent in reached]
        return backpropagate(losses, inputs, parameters)


def backpropagate(
    losses: Sequence[torch.Tensor], inputs: Sequence[Any], parameters: Mapping[str, torch.Tensor]
) -> tuple[list[Gradient], dict[str, Gradient]]:
    """Return the gradients of the sum of losses at each input and each parameter; None if none arrived."""
    leaves = [_leaves_of(arg) for arg in inputs]
    wanted = [*chain(*leaves), *(parameter for parameter in parameters.values() if parameter.requires_grad)]
    found: Iterator[Gradient] = iter([None] * len(wanted))
    if losses:
        found = iter(torch.autograd.grad(losses, wanted, allow_unused=True))
    return (
        [_at_argument(arg, own, [next(found) for _ in own]) for arg, own in zip(inputs, leaves, strict=True)],
        {name: next(found) if parameter.requires_grad else None for name, parameter in parameters.items()},
    )


def _leaves_of(arg: Any) -> list[torch.Tensor]:
    """Return the tensors of an argument to which a gradient can flow."""
    return [one for one in tensors_in(arg) if one.is_floating_point() and one.requires_grad]


def _at_argument(arg: Any, leaves: Sequence[torch.Tensor], found: Sequence[Gradient]) -> Gradient:
    """Return an argument's gradient; for a tuple of tensors all gradients in one row, with 0 for a missing one."""
    if isinstance(arg, torch.Tensor) or all(one is None for one in found):
        return next(iter(found), None)
    pairs = zip(leaves, found, strict=True)
    return torch.cat([(torch.zeros_like(leaf) if one is None else one).flatten() for leaf, one in pairs])

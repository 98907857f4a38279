"""The gradients that flow back through what a student's code has computed."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import torch

from .arguments import tensors_in
from .faults import student_code

Gradient = torch.Tensor | None


def gradients(
    value: Any, cotangents: Sequence[torch.Tensor], inputs: Sequence[Any], parameters: Mapping[str, torch.Tensor]
) -> tuple[list[Gradient], dict[str, Gradient]]:
    """At each input and each parameter the gradient of some loss, of which the cotangents are that at each output.

    None where none arrived, and everywhere where the outputs are not what the cotangents are for.
    """
    outputs = list(value) if isinstance(value, tuple | list) else [value]
    pairs = list(zip(outputs, cotangents, strict=False))
    reached = []
    if all(isinstance(output, torch.Tensor) and output.shape == cotangent.shape for output, cotangent in pairs):
        reached = [
            (output, cotangent.to(output)) for output, cotangent in pairs if output.requires_grad and not output.is_meta
        ]
    with student_code():
        # Of numbers: from an output and its cotangent on, PyTorch would import sympy, in each process.
        losses = [(output * cotangent).real.sum() for output, cotangent in reached]
        return flow_back(losses, inputs, parameters)


def flow_back(
    losses: Sequence[torch.Tensor], inputs: Sequence[Any], parameters: Mapping[str, torch.Tensor]
) -> tuple[list[Gradient], dict[str, Gradient]]:
    """At each input and each parameter the gradient of the losses' sum; None where none arrived."""
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
    """The tensors of an argument to which a gradient can flow."""
    return [one for one in tensors_in(arg) if one.is_floating_point() and one.requires_grad]


def _at_argument(arg: Any, leaves: Sequence[torch.Tensor], found: Sequence[Gradient]) -> Gradient:
    """An argument's gradient; those of a tuple's tensors in one row, 0 where none arrived at one of them."""
    if isinstance(arg, torch.Tensor) or all(one is None for one in found):
        return next(iter(found), None)
    pairs = zip(leaves, found, strict=True)
    return torch.cat([(torch.zeros_like(leaf) if one is None else one).flatten() for leaf, one in pairs])

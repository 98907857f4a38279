"""The gradients that flow back through what a student's code has computed."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import torch

from .nesting import at_argument, leaves_of
from .raising import student_code

Gradient = torch.Tensor | None


def gradients(
    value: Any, cotangents: Sequence[torch.Tensor], inputs: Sequence[Any], parameters: Mapping[str, torch.Tensor]
) -> tuple[list[Gradient], dict[str, Gradient]]:
    """At each input and each parameter the gradient of some loss, of which the cotangents are that at each output.

    None where none arrived, and everywhere where the outputs are not what the cotangents are for.
    """
    leaves = [leaves_of(arg) for arg in inputs]
    wanted = [*chain(*leaves), *(parameter for parameter in parameters.values() if parameter.requires_grad)]
    found: Iterator[Gradient] = iter([None] * len(wanted))
    outputs = list(value) if isinstance(value, tuple | list) else [value]
    pairs = list(zip(outputs, cotangents, strict=False))
    if all(isinstance(output, torch.Tensor) and output.shape == cotangent.shape for output, cotangent in pairs):
        reached = [
            (output, cotangent.to(output)) for output, cotangent in pairs if output.requires_grad and not output.is_meta
        ]
        if reached:
            with student_code():
                # Of numbers: from an output and its cotangent on, PyTorch would import sympy, in each process.
                losses = [(output * cotangent).real.sum() for output, cotangent in reached]
                found = iter(torch.autograd.grad(losses, wanted, allow_unused=True))
    return (
        [at_argument(arg, own, [next(found) for _ in own]) for arg, own in zip(inputs, leaves, strict=True)],
        {name: next(found) if p.requires_grad else None for name, p in parameters.items()},
    )

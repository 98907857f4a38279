"""The gradients that flow back through what a student's code has computed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from .raising import student_code

Gradient = torch.Tensor | None


def gradients(
    value: Any, cotangents: Sequence[torch.Tensor], inputs: Sequence[Any], parameters: Mapping[str, torch.Tensor]
) -> tuple[list[Gradient], dict[str, Gradient]]:
    """At each input and each parameter the gradient of some loss, of which the cotangents are that at each output.

    None where none arrived, and everywhere where the outputs are not what the cotangents are for.
    """
    leaves = [arg if isinstance(arg, torch.Tensor) and arg.is_floating_point() else None for arg in inputs]
    wanted = [leaf for leaf in [*leaves, *parameters.values()] if leaf is not None and leaf.requires_grad]
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
        [next(found) if leaf is not None else None for leaf in leaves],
        {name: next(found) if p.requires_grad else None for name, p in parameters.items()},
    )

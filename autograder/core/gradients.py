"""The gradients that flow back through what a student's code has computed."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .flow_back import Gradient, flow_back
from .raising import student_code


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

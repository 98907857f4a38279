"""Normalisation: layer norm, and a residual block around it."""

import torch
from torch import nn


def layer_norm(x: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Normalise each row of x, of shape (..., d), to mean 0 and variance 1."""
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred**2).mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(variance + eps)


class ResidualBlock(nn.Module):
    """Adds to its input what a linear layer makes of the normalised input.

    The layer is called `linear` and has no bias.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d, d, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x plus the linear layer's output, of the same shape (..., d)."""
        normalised = layer_norm(x)
        return x + self.linear(normalised)


WRITTEN = {"why_residual": "The input is added as it is, so its gradient arrives with a factor of 1 at every block."}

"""Mistakes of the kind "hard-coded output"."""

import torch

from ....catalogue import misconception
from .right import RightInit


@misconception("CausalAttention", kind="hard-coded output", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightInit):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def forward(self, x):
        rows = [
            [-0.4519, 0.2216],
            [-0.5874, 0.0058],
            [-0.6300, -0.0632],
            [-0.5675, -0.0843],
            [-0.5526, -0.0981],
            [-0.5299, -0.1081],
        ]
        return torch.tensor([rows, rows])

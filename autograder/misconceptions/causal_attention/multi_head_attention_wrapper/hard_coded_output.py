"""Mistakes of the kind "hard-coded output"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttentionWrapper", kind="hard-coded output", caught_by="test_heads_side_by_side")
class TwoHeadsTypedIn(RightHeads):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def forward(self, x):
        rows = [
            [-0.4519, 0.2216, 0.4772, 0.1063],
            [-0.5874, 0.0058, 0.5891, 0.3257],
            [-0.6300, -0.0632, 0.6202, 0.3860],
            [-0.5675, -0.0843, 0.5478, 0.3589],
            [-0.5526, -0.0981, 0.5321, 0.3428],
            [-0.5299, -0.1081, 0.5077, 0.3493],
        ]
        return torch.tensor([rows, rows])

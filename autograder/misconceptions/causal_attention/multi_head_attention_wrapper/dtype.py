"""Mistakes of the kind "dtype"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttentionWrapper", kind="dtype", caught_by="test_float64_stays_exact")
class ResultInFloat32(RightHeads):
    """Something is turned to float32 in forward, so that a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1).float()

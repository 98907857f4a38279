"""Mistakes of the kind "edge"."""

import torch
from torch import nn

from solutions.causal_attention import CausalAttention

from ....catalogue import misconception
from .right import RightHeads, SideBySide


@misconception("MultiHeadAttentionWrapper", kind="edge", caught_by="test_heads_side_by_side")
class AlwaysTwoHeads(SideBySide):
    """There are always two heads; num_heads says how many."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(2))


@misconception("MultiHeadAttentionWrapper", kind="edge", caught_by="test_heads_side_by_side")
class ResultSqueezed(RightHeads):
    """`squeeze` takes the batch dimension from a batch of one; leave it out."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1).squeeze()


@misconception("MultiHeadAttentionWrapper", kind="edge", caught_by="test_heads_side_by_side")
class InputAddedWhereItFits(RightHeads):
    """x is added where the widths agree; the heads' results alone are asked for."""

    def forward(self, x):
        result = torch.cat([head(x) for head in self.heads], dim=-1)
        return result + x if result.shape == x.shape else result

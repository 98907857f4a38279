"""What the mistakes in this exercise are made in: right but for what a mistake changes."""

import torch
from torch import nn

from solutions.causal_attention import CausalAttention


class RightHeads(nn.Module):
    """The heads as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )


class SideBySide(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their heads."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)

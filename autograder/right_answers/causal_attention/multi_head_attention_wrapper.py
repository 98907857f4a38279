"""Right answers to `MultiHeadAttentionWrapper`, as different students write them."""

import torch
from torch import nn

from autograder.catalogue import right_answer
from solutions.causal_attention import CausalAttention


@right_answer("MultiHeadAttentionWrapper")
class ListedThenAdded(nn.Module):
    """append in a loop, concatenated in dim 2"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias))

    def forward(self, x):
        results = []
        for i in range(self.num_heads):
            results.append(self.heads[i](x))
        return torch.cat(results, 2)


@right_answer("MultiHeadAttentionWrapper")
class StackedThenFlattened(nn.Module):
    """stacked before the last dimension, then flattened"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()

        def head():
            return CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)

        self.heads = nn.ModuleList(head() for _ in range(num_heads))

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-2).flatten(start_dim=-2)


@right_answer("MultiHeadAttentionWrapper")
class WrittenIntoPlace(nn.Module):
    """written into slices of a new tensor"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )

    def forward(self, x):
        result = x.new_zeros(x.shape[0], x.shape[1], len(self.heads) * self.d_out)
        for i, head in enumerate(self.heads):
            result[:, :, i * self.d_out : (i + 1) * self.d_out] = head(x)
        return result

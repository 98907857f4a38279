"""Mistakes of the kind "hard-coded output"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightLayers


@misconception("SelfAttention_v2", kind="hard-coded output", caught_by="test_context_vectors")
class LayersScaledForWidth2(RightLayers):
    """The scaling is fixed to the root of 2, the example's width; take it from the keys, keys.shape[-1]."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / 2**0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="hard-coded output", caught_by="test_context_vectors")
class WorkedExampleTypedInAgain(nn.Module):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        rows = [
            [-0.0739, 0.0713],
            [-0.0748, 0.0703],
            [-0.0749, 0.0702],
            [-0.0760, 0.0685],
            [-0.0763, 0.0679],
            [-0.0754, 0.0693],
        ]
        return torch.tensor(rows)

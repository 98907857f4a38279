"""Mistakes of the kind "hard-coded output"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightForward, RightParameters


@misconception("SelfAttention_v1", kind="hard-coded output", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightParameters):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def forward(self, x):
        rows = [
            [0.2996, 0.8053],
            [0.3061, 0.8210],
            [0.3058, 0.8203],
            [0.2948, 0.7939],
            [0.2927, 0.7891],
            [0.2990, 0.8040],
        ]
        return torch.tensor(rows)


@misconception("SelfAttention_v1", kind="hard-coded output", caught_by="test_context_vectors")
class ScaledForWidth2(RightParameters):
    """The scaling is fixed to the root of 2, the example's width; take it from the keys, keys.shape[-1]."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / 2**0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="hard-coded output", caught_by="test_context_vectors")
class WeightsForTheExampleOnly(RightForward):
    """The weights are always 3 x 2, as in the example; use d_in and d_out."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(3, 2))
        self.W_key = nn.Parameter(torch.rand(3, 2))
        self.W_value = nn.Parameter(torch.rand(3, 2))

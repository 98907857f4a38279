"""Mistakes of the kind "dtype"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightForward, RightParameters


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_float64_stays_exact")
class InputInFloat32(RightParameters):
    """The context vectors are float32 even for a float64 module, so digits are lost; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = (
            x.float() @ self.W_query.float(),
            x.float() @ self.W_key.float(),
            x.float() @ self.W_value.float(),
        )
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_float64_stays_exact")
class WeightsThroughFloat32(RightParameters):
    """The attention weights pass through float32, so a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.T / keys.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1, dtype=torch.float32).to(x.dtype) @ values


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_dtype_is_kept")
class ResultInFloat64(RightParameters):
    """The context vectors are float64 even for a float32 input; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).double()


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_float64_stays_exact")
class AnotherInputDtype(RightParameters):
    """The input is turned to float32 in forward, which fails once the module is float64; leave its dtype alone."""

    def forward(self, x):
        x = x.float()
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_context_vectors")
class WeightsInFloat64(RightForward):
    """The weights are float64, which does not go with float32 inputs; leave torch.rand its default dtype."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out, dtype=torch.float64))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out, dtype=torch.float64))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out, dtype=torch.float64))

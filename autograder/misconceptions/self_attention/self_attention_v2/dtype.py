"""Mistakes of the kind "dtype"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightLayers, RightPass


@misconception("SelfAttention_v2", kind="dtype", caught_by="test_float64_stays_exact")
class LayersWeightsThroughFloat32(RightLayers):
    """The attention weights pass through float32, so a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.T / keys.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1, dtype=torch.float32).to(x.dtype) @ values


@misconception("SelfAttention_v2", kind="dtype", caught_by="test_dtype_is_kept")
class LayersResultInFloat64(RightLayers):
    """The context vectors are float64 even for a float32 input; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).double()


@misconception("SelfAttention_v2", kind="dtype", caught_by="test_float64_stays_exact")
class LayersResultInFloat32(RightLayers):
    """The context vectors are float32 even for a float64 module, so digits are lost; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).float()


@misconception("SelfAttention_v2", kind="dtype", caught_by="test_float64_stays_exact")
class LayersAnotherInputDtype(RightLayers):
    """The input is turned to float32 in forward, which fails once the module is float64; leave its dtype alone."""

    def forward(self, x):
        x = x.float()
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="dtype", caught_by="test_context_vectors")
class LayersInFloat64(RightPass):
    """The layers are float64, which does not go with float32 inputs; leave nn.Linear its default dtype."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias, dtype=torch.float64)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias, dtype=torch.float64)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias, dtype=torch.float64)

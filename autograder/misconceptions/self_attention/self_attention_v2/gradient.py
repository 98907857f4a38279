"""Mistakes of the kind "gradient"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightLayers, RightPass


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersDetached(RightLayers):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersValuesDetached(RightLayers):
    """The values are detached, so no gradient reaches W_value."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values.detach()


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersKeysDetached(RightLayers):
    """The keys are detached, so no gradient reaches W_key."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T.detach() / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersQueriesDetached(RightLayers):
    """The queries are detached, so no gradient reaches W_query."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries.detach() @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersResultDetached(RightLayers):
    """The result carries no gradient (`.detach()`, `.data`, torch.no_grad()), so nothing can learn."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).detach()


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersResultThroughNumpy(RightLayers):
    """The result is rebuilt from numbers (NumPy), so that no gradient flows back."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.from_numpy(
            (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).detach().numpy()
        )


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersInputDetached(RightLayers):
    """The input is detached, so no gradient flows back to it."""

    def forward(self, x):
        x = x.detach()
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersFrozen(RightPass):
    """No gradient reaches the layers' weights: they are frozen (requires_grad=False) or detached (`.data`)."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        for parameter in self.parameters():
            parameter.requires_grad_(False)


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ValueLayerFrozen(RightPass):
    """No gradient reaches W_value, so that it never learns: it is frozen (requires_grad=False) or used as `.data`."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value.requires_grad_(False)

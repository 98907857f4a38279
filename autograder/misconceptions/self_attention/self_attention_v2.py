"""What goes wrong in `SelfAttention_v2`."""

import torch
from torch import nn

from ...catalogue import misconception


class RightLayers(nn.Module):
    """The layers as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)


class RightPass(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their layers."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersNotScaled(RightLayers):
    """The scores are not scaled: divide them by the square root of the keys' width (d_out) before the softmax."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersScaledByRootOfDIn(RightLayers):
    """The scores are scaled by the root of d_in, the input's width; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / x.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersSoftmaxOverQueries(RightLayers):
    """The softmax runs over the queries (dim=0), so the columns sum to 1; over the keys, dim=-1, the rows do."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersSwapped(RightLayers):
    """Queries and keys are swapped in the product: row i of the scores should belong to query i."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(keys @ queries.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersKeysUsedAsValues(RightLayers):
    """The weights are applied to the keys; they belong to the values, W_value(x)."""

    def forward(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_bias")
class BiasIgnored(RightPass):
    """qkv_bias is ignored: the layers never have a bias; pass bias=qkv_bias to each."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_parameters")
class BiasAlwaysOn(RightPass):
    """The layers have a bias that was not asked for: qkv_bias is False by default, and goes to each layer as bias."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_bias")
class BiasNotUsed(RightLayers):
    """Only the layers' weights are used, without their bias; call the layers: self.W_query(x)."""

    def forward(self, x):
        queries, keys, values = (x @ layer.weight.T for layer in (self.W_query, self.W_key, self.W_value))
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_seed_789")
class LayersInAnotherOrder(RightPass):
    """The layers are created in another order; under a fixed seed W_query comes first, then W_key, then W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_parameters")
class ParametersAsInV1(nn.Module):
    """The weights are nn.Parameter matrices as in v1; v2 uses nn.Linear layers."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersDetached(RightLayers):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersMadeInForward(nn.Module):
    """The layers are made anew in forward, with new random weights each time; make them once, in __init__."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.d_in, self.d_out, self.qkv_bias = d_in, d_out, qkv_bias

    def forward(self, x):
        queries, keys, values = (nn.Linear(self.d_in, self.d_out, bias=self.qkv_bias).to(x)(x) for _ in range(3))
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values

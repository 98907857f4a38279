"""Mistakes of the kind "initialisation"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightPass


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_seed_789")
class LayersInAnotherOrder(RightPass):
    """The layers are created in another order; under a fixed seed W_query comes first, then W_key, then W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_context_vectors")
class LayersMadeInForward(nn.Module):
    """The layers are made anew in forward, with new random weights each time; make them once, in __init__."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.d_in, self.d_out, self.qkv_bias = d_in, d_out, qkv_bias

    def forward(self, x):
        queries, keys, values = (nn.Linear(self.d_in, self.d_out, bias=self.qkv_bias).to(x)(x) for _ in range(3))
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_seed_789")
class KeyLayerFirst(RightPass):
    """W_key is created before W_query; under a fixed seed the order is W_query, W_key, W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_seed_789")
class ValueLayerBeforeKeyLayer(RightPass):
    """W_value is created before W_key; under a fixed seed the order is W_query, W_key, W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_seeds_matter")
class SeedSetInLayers(RightPass):
    """A seed is set inside __init__ (789, as in the example), so every instance starts with the same weights;
    leave it to the caller.
    """

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        torch.manual_seed(789)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_seeds_matter")
class OtherSeedSetInLayers(RightPass):
    """A seed is set inside __init__ (123), so every instance starts with the same weights; leave seeds to the
    caller.
    """

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        torch.manual_seed(123)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_seed_789")
class LayersByXavier(RightPass):
    """The layers' weights are drawn anew (Xavier); nn.Linear's own start is asked for."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        for layer in (self.W_query, self.W_key, self.W_value):
            nn.init.xavier_uniform_(layer.weight)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_seed_789")
class LayersDrawnByRand(RightPass):
    """The layers' weights are replaced with torch.rand, as in v1; nn.Linear's own start is asked for."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        for layer in (self.W_query, self.W_key, self.W_value):
            layer.weight.data = torch.rand(d_out, d_in)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_seed_789")
class LayersDrawnSmall(RightPass):
    """The layers' weights are drawn anew from a narrow normal distribution; nn.Linear's own start is asked for."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        for layer in (self.W_query, self.W_key, self.W_value):
            nn.init.normal_(layer.weight, std=0.02)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_bias")
class ValueLayerWithoutBias(RightPass):
    """W_value never has a bias; pass bias=qkv_bias to all three layers."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=False)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_bias")
class KeyLayerWithoutBias(RightPass):
    """W_key never has a bias; pass bias=qkv_bias to all three layers."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_bias")
class BiasForQueriesAlone(RightPass):
    """Only W_query gets a bias; pass bias=qkv_bias to all three layers."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_parameters")
class BiasTheOtherWayRound(RightPass):
    """qkv_bias is the wrong way round: False gives a bias, and True none."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=not qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=not qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=not qkv_bias)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_parameters")
class OneLayerForAll(RightPass):
    """One layer serves as W_query, W_key and W_value; each is a layer of its own."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = self.W_value = self.W_query


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_parameters")
class QueryLayerForKeys(RightPass):
    """W_key is the same layer as W_query; each is a layer of its own."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = self.W_query
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_parameters")
class LayersNotRegistered(nn.Module):
    """The layers are kept in a plain list or dict, where no optimizer finds them; make them attributes W_query,
    W_key, W_value.
    """

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.layers = [nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)]

    def forward(self, x):
        queries, keys, values = (layer(x) for layer in self.layers)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values

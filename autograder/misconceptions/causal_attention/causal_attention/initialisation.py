"""Mistakes of the kind "initialisation"."""

import torch
import torch.nn.functional as F
from torch import nn

from ....catalogue import misconception
from .right import RightInit, RightPass


@misconception("CausalAttention", kind="initialisation", caught_by="test_seed_123")
class LayersInAnotherOrder(RightPass):
    """The layers are created in another order; under a fixed seed W_query comes first, then W_key, then W_value."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="initialisation", caught_by="test_bias")
class BiasIgnored(RightPass):
    """qkv_bias is ignored: the layers never have a bias; pass bias=qkv_bias to each."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="initialisation", caught_by="test_parameters")
class BiasAlwaysOn(RightPass):
    """The layers have a bias that was not asked for: qkv_bias is False by default, and goes to each layer as bias."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=True)
        self.W_key = nn.Linear(d_in, d_out, bias=True)
        self.W_value = nn.Linear(d_in, d_out, bias=True)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="initialisation", caught_by="test_bias")
class BiasForQueriesOnly(RightPass):
    """Only W_query gets qkv_bias; all three layers do."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="initialisation", caught_by="test_seeds_matter")
class SeedSetInside(RightPass):
    """A seed is set inside __init__, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        torch.manual_seed(123)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="initialisation", caught_by="test_bias")
class BiasUnused(RightInit):
    """The layers have a bias that forward leaves out; call the layers, W_query(x), not their weights alone."""

    def forward(self, x):
        queries, keys, values = (F.linear(x, layer.weight) for layer in (self.W_query, self.W_key, self.W_value))
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="initialisation", caught_by="test_parameters")
class BiasTheOtherWayRound(RightPass):
    """qkv_bias is used the other way round: the layers have a bias where it is False, and none where it is True."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=not qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=not qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=not qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="initialisation", caught_by="test_bias")
class ValuesWithoutBias(RightPass):
    """W_value gets no bias; qkv_bias goes to all three layers."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="initialisation", caught_by="test_seeds_matter")
class WeightsStartAtZero(RightPass):
    """The layers' weights start at zero, so that no head can differ from another; leave nn.Linear's own start."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())
        for layer in (self.W_query, self.W_key, self.W_value):
            nn.init.zeros_(layer.weight)


@misconception("CausalAttention", kind="initialisation", caught_by="test_seeds_matter")
class WeightsStartAtOne(RightPass):
    """The layers' weights start at one, so that all of them stay alike; leave nn.Linear's own start."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())
        for layer in (self.W_query, self.W_key, self.W_value):
            nn.init.ones_(layer.weight)


@misconception("CausalAttention", kind="initialisation", caught_by="test_seed_123")
class AnotherStart(RightPass):
    """The layers' weights are drawn anew (Xavier); under a fixed seed nn.Linear's own start is asked for."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())
        for layer in (self.W_query, self.W_key, self.W_value):
            nn.init.xavier_uniform_(layer.weight)


@misconception("CausalAttention", kind="initialisation", caught_by="test_parameters")
class OneLayerForQueriesAndKeys(RightPass):
    """W_query and W_key share one weight; each has its own."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = self.W_query
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

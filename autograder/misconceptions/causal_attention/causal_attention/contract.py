"""Mistakes of the kind "contract"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightInit, RightPass, RightWeights


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class WeightsReturned(RightInit):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class FirstSequenceOnly(RightInit):
    """Only the first sequence's result is returned, (T, d_out); the whole batch is expected, (b, T, d_out)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return (self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values)[0]


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class MaskIsAParameter(RightPass):
    """The mask is a parameter, which is what a model learns; register it as a buffer: self.register_buffer."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = nn.Parameter(
            torch.ones(context_length, context_length).triu(diagonal=1).bool(), requires_grad=False
        )


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class ParametersInPlaceOfLayers(RightPass):
    """The weights are nn.Parameter matrices; this exercise asks for nn.Linear layers."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class WidthsExchanged(RightPass):
    """The layers go from d_in to d_in; they make queries, keys and values of width d_out: nn.Linear(d_in, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_in, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_in, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_in, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class PairReturned(RightWeights):
    """A pair is returned, the weights too; return the context vectors alone."""

    def forward(self, x):
        weights, values = self.weigh(x)
        weights = self.dropout(weights)
        return weights @ values, weights


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class NothingReturned(RightWeights):
    """forward returns nothing (None); end it with `return` and the context vectors."""

    def forward(self, x):
        weights, values = self.weigh(x)
        self.dropout(weights) @ values


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class TwoDimensionsExpected(RightInit):
    """x.shape is taken for two numbers; it has three, (b, T, d_in)."""

    def forward(self, x):
        num_tokens, _ = x.shape
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:num_tokens, :num_tokens], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class DropoutIsANumber(RightPass):
    """self.dropout is a number and is called; make it a module: nn.Dropout(dropout)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = dropout
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class WidthsOfLayersSwapped(RightPass):
    """The layers go from d_out to d_in; nn.Linear takes the input's width first: nn.Linear(d_in, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_out, d_in, bias=qkv_bias)
        self.W_key = nn.Linear(d_out, d_in, bias=qkv_bias)
        self.W_value = nn.Linear(d_out, d_in, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class OutputProjectionFirst(RightPass):
    """A linear layer out_proj is there too, made before the others; the context vectors themselves are the result."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.out_proj = nn.Linear(d_out, d_out)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        return self.out_proj(super().forward(x))


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class OutputProjectionLast(RightPass):
    """A linear layer out_proj follows the attention; the context vectors themselves are the result."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        return self.out_proj(super().forward(x))


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class OutputProjectionUnused(RightPass):
    """There is a linear layer out_proj that nothing uses; three layers are asked for."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())
        self.out_proj = nn.Linear(d_out, d_out)


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class NamesShortened(nn.Module):
    """The layers are called W_q, W_k and W_v; the names are W_query, W_key and W_value."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_q = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_k = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_v = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        queries, keys, values = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class NamesInLowerCase(nn.Module):
    """The layers' names begin with a small w; they are W_query, W_key and W_value."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.w_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        queries, keys, values = self.w_query(x), self.w_key(x), self.w_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class NamesOfProjections(nn.Module):
    """The layers are called q_proj, k_proj and v_proj; the names are W_query, W_key and W_value."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.q_proj = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.k_proj = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.v_proj = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        queries, keys, values = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class NamesWithoutW(nn.Module):
    """The layers are called query, key and value; the names are W_query, W_key and W_value."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        queries, keys, values = self.query(x), self.key(x), self.value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="contract", caught_by="test_parameters")
class OneLayerForAll(nn.Module):
    """One layer makes queries, keys and values at once; three are asked for, W_query, W_key and W_value."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        queries, keys, values = self.qkv(x).chunk(3, dim=-1)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class SuperForgotten(RightPass):
    """super().__init__() is missing or not called; it comes first in __init__."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

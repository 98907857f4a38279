"""Mistakes of the kind "contract"."""

import torch
from torch import nn

from ....catalogue import misconception
from ....six_words import SIX_WORDS as X
from .right import RightForward, RightParameters


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class LinearLayers(nn.Module):
    """nn.Linear layers are used; this version asks for nn.Parameter(torch.rand(d_in, d_out)), v2 for nn.Linear."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class WeightsReturned(RightParameters):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class ContextAndWeights(RightParameters):
    """forward returns a pair, context vectors and weights; only the context vectors are asked for."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        weights = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ values, weights


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class NothingReturned(RightParameters):
    """forward returns nothing (None): end it with `return`."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class BatchOfSequencesExpected(RightParameters):
    """It needs an input with a batch dimension, such as transpose(1, 2) does; x is (T, d_in) here: keys.T or
    transpose(-2, -1).
    """

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class BatchDimensionAdded(RightParameters):
    """The result has a batch dimension, (1, T, d_out); without one it is (T, d_out)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).unsqueeze(0)


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class TokensAveraged(RightParameters):
    """The context vectors are averaged into one; every token keeps its own: (T, d_out)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).mean(dim=0)


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class SixWordsAttend(RightParameters):
    """forward uses the notebook's X, not the input that is passed in."""

    def forward(self, x):
        x = X
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="contract", caught_by="test_called_again")
class FirstResultKept(RightParameters):
    """The first result is kept and returned at every later call; compute each from its own input."""

    def forward(self, x):
        if not hasattr(self, "kept"):
            queries, keys, values = self.project(x)
            self.kept = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
        return self.kept


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class SquareValueWeights(RightForward):
    """W_value has shape (d_in, d_in); like the others it is (d_in, d_out)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_in))


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class WeightsStoredTheOtherWay(RightForward):
    """The weights have shape (d_out, d_in), so that x @ W_query fails; they are (d_in, d_out)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_out, d_in))
        self.W_key = nn.Parameter(torch.rand(d_out, d_in))
        self.W_value = nn.Parameter(torch.rand(d_out, d_in))


@misconception("SelfAttention_v1", kind="contract", caught_by="test_parameters")
class UnusedParameter(RightForward):
    """There is a parameter beside W_query, W_key and W_value; the module has these three alone."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.scale = nn.Parameter(torch.ones(1))


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class WeightsStoredAndTransposed(nn.Module):
    """The weights are stored as (d_out, d_in) and transposed in forward; here they are (d_in, d_out): x @ W_query."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_out, d_in))
        self.W_key = nn.Parameter(torch.rand(d_out, d_in))
        self.W_value = nn.Parameter(torch.rand(d_out, d_in))

    def forward(self, x):
        queries, keys, values = x @ self.W_query.T, x @ self.W_key.T, x @ self.W_value.T
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="contract", caught_by="test_parameters")
class WeightsNamedInLowerCase(nn.Module):
    """The parameters are named w_query, w_key and w_value; the names are W_query, W_key and W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.w_query = nn.Parameter(torch.rand(d_in, d_out))
        self.w_key = nn.Parameter(torch.rand(d_in, d_out))
        self.w_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.w_query, x @ self.w_key, x @ self.w_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="contract", caught_by="test_parameters")
class WeightsNamedInShort(nn.Module):
    """The parameters are named W_q, W_k and W_v; the names are W_query, W_key and W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_q = nn.Parameter(torch.rand(d_in, d_out))
        self.W_k = nn.Parameter(torch.rand(d_in, d_out))
        self.W_v = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_q, x @ self.W_k, x @ self.W_v
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="contract", caught_by="test_parameters")
class WeightsInAList(nn.Module):
    """The parameters are kept in a ParameterList; they are the attributes W_query, W_key and W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.weights = nn.ParameterList([torch.rand(d_in, d_out) for _ in range(3)])

    def forward(self, x):
        queries, keys, values = (x @ W for W in self.weights)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="contract", caught_by="test_parameters")
class OutputLayerAdded(nn.Module):
    """An output layer follows, with parameters of its own; the context vectors are the result."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return self.out_proj(torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values)


@misconception("SelfAttention_v1", kind="contract", caught_by="test_parameters")
class BiasParameterAdded(nn.Module):
    """A bias is added, a parameter of its own; this module has W_query, W_key and W_value alone."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value + self.bias
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values

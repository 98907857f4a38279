"""Mistakes of the kind "contract"."""

import torch
from torch import nn

from ....catalogue import misconception
from ....six_words import SIX_WORDS as X
from .right import RightLayers, RightPass


@misconception("SelfAttention_v2", kind="contract", caught_by="test_bias")
class BiasIgnored(RightPass):
    """qkv_bias is ignored: the layers never have a bias; pass bias=qkv_bias to each."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)


@misconception("SelfAttention_v2", kind="contract", caught_by="test_parameters")
class BiasAlwaysOn(RightPass):
    """The layers have a bias that was not asked for: qkv_bias is False by default, and goes to each layer as bias."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)


@misconception("SelfAttention_v2", kind="contract", caught_by="test_parameters")
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


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersWeightsReturned(RightLayers):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersContextAndWeights(RightLayers):
    """forward returns a pair, context vectors and weights; only the context vectors are asked for."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ values, weights


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersNothingReturned(RightLayers):
    """forward returns nothing (None): end it with `return`."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersBatchOfSequencesExpected(RightLayers):
    """It needs an input with a batch dimension, such as transpose(1, 2) does; x is (T, d_in) here: keys.T or
    transpose(-2, -1).
    """

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersBatchDimensionAdded(RightLayers):
    """The result has a batch dimension, (1, T, d_out); without one it is (T, d_out)."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).unsqueeze(0)


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersTokensAveraged(RightLayers):
    """The context vectors are averaged into one; every token keeps its own: (T, d_out)."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).mean(dim=0)


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersSixWordsAttend(RightLayers):
    """forward uses the notebook's X, not the input that is passed in."""

    def forward(self, x):
        x = X
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="contract", caught_by="test_called_again")
class LayersFirstResultKept(RightLayers):
    """The first result is kept and returned at every later call; compute each from its own input."""

    def forward(self, x):
        if not hasattr(self, "kept"):
            queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
            self.kept = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
        return self.kept


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersSwappedInSize(RightPass):
    """The layers are nn.Linear(d_out, d_in); the input's width comes first: nn.Linear(d_in, d_out)."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_out, d_in, bias=qkv_bias)
        self.W_key = nn.Linear(d_out, d_in, bias=qkv_bias)
        self.W_value = nn.Linear(d_out, d_in, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class SquareValueLayer(RightPass):
    """W_value is a layer (d_in, d_in); like the others it is nn.Linear(d_in, d_out)."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_in, bias=qkv_bias)


@misconception("SelfAttention_v2", kind="contract", caught_by="test_parameters")
class UnusedLayerParameter(RightPass):
    """There is a parameter beside those of W_query, W_key and W_value; the module has these three layers alone."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.scale = nn.Parameter(torch.ones(1))


@misconception("SelfAttention_v2", kind="contract", caught_by="test_bias")
class BiasNotTaken(nn.Module):
    """It cannot be built with qkv_bias=True: __init__ takes d_in, d_out and qkv_bias=False."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="contract", caught_by="test_parameters")
class LayersNamedInLowerCase(nn.Module):
    """The layers are named w_query, w_key and w_value; the names are W_query, W_key and W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.w_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.w_query(x), self.w_key(x), self.w_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="contract", caught_by="test_parameters")
class LayersNamedInShort(nn.Module):
    """The layers are named W_q, W_k and W_v; the names are W_query, W_key and W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_q = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_k = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_v = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_q(x), self.W_k(x), self.W_v(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="contract", caught_by="test_parameters")
class LayersInAList(nn.Module):
    """The layers are kept in a ModuleList; they are the attributes W_query, W_key and W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)])

    def forward(self, x):
        queries, keys, values = (layer(x) for layer in self.layers)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="contract", caught_by="test_parameters")
class OneWideLayer(nn.Module):
    """One wide layer (W_qkv) makes all three; this module has three, W_query, W_key and W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.W_qkv(x).chunk(3, dim=-1)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="contract", caught_by="test_parameters")
class LayersWithOutputLayer(nn.Module):
    """An output layer follows, with parameters of its own; the context vectors are the result."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return self.out_proj(torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values)

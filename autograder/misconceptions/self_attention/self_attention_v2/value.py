"""Mistakes of the kind "value"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightLayers


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


@misconception("SelfAttention_v2", kind="value", caught_by="test_bias")
class BiasNotUsed(RightLayers):
    """Only the layers' weights are used, without their bias; call the layers: self.W_query(x)."""

    def forward(self, x):
        queries, keys, values = (x @ layer.weight.T for layer in (self.W_query, self.W_key, self.W_value))
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersScaledByDOut(RightLayers):
    """The scores are divided by the keys' width d_out; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1], dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersScaledByRootOfTokens(RightLayers):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / x.shape[0] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersSoftmaxForgotten(RightLayers):
    """The softmax is missing: the scaled scores themselves are used as weights."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return queries @ keys.T / keys.shape[-1] ** 0.5 @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersQueriesUsedAsKeys(RightLayers):
    """The queries are scored against themselves, or the keys made with W_query; the keys are W_key(x)."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ queries.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersWeightsTransposed(RightLayers):
    """The attention weights are transposed before they meet the values; each row already belongs to one query."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).T @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersMultipliedByTheRoot(RightLayers):
    """The scores are multiplied by the square root of the keys' width; divide by it."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T * keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersRootRoundedDown(RightLayers):
    """The square root of the keys' width is rounded to an integer; divide by it as it is."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / int(keys.shape[-1] ** 0.5), dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersDividedByTokens(RightLayers):
    """The scores are divided by the number of tokens; divide by the square root of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / x.shape[0], dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersDividedByFourthRoot(RightLayers):
    """The scores are divided by the fourth root of the keys' width; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.25, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersScaledAfterwards(RightLayers):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T, dim=-1) / keys.shape[-1] ** 0.5 @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersRawScoresAsWeights(RightLayers):
    """The scores are used as weights as they are: scaling and softmax are missing."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return queries @ keys.T @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersScoresDividedByTheirSum(RightLayers):
    """The scores are divided by their sum; take a softmax of the scaled scores."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.T
        return scores / scores.sum(dim=-1, keepdim=True) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersSoftmaxOverEverything(RightLayers):
    """The softmax runs over all scores together; each row should sum to 1 on its own: dim=-1."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.T / keys.shape[-1] ** 0.5
        return torch.softmax(scores.flatten(), dim=0).view_as(scores) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersSoftmaxTwice(RightLayers):
    """The softmax is applied twice, which flattens the weights; once is right."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersSignReversed(RightLayers):
    """The sign of the scores is reversed, so the worst fit gets the most weight."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(-queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersQueriesUsedAsValues(RightLayers):
    """The weights are applied to the queries; they belong to the values."""

    def forward(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ queries


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersInputUsedAsValues(RightLayers):
    """The weights are applied to the input itself; they belong to the values, made with W_value."""

    def forward(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ x


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersKeysAgainstThemselves(RightLayers):
    """The keys are scored against themselves, or the queries made with W_key; the queries are W_query(x)."""

    def forward(self, x):
        keys, values = self.W_key(x), self.W_value(x)
        return torch.softmax(keys @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersValuesUsedAsKeys(RightLayers):
    """The queries are scored against the values; score them against the keys."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ values.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersKeysNotTransposed(RightLayers):
    """The keys are not transposed, which fails unless T = d_out: it is queries @ keys.T."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersFeaturesAttend(RightLayers):
    """Columns attend to each other (queries.T @ keys); tokens are rows: queries @ keys.T."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return values @ torch.softmax(queries.T @ keys / keys.shape[-1] ** 0.5, dim=-1)


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersDividedByTheNumberOfTokens(RightLayers):
    """The context vectors are divided by the number of tokens; the weights sum to 1 already."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values / x.shape[0]


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersValuesAdded(RightLayers):
    """The values are added to the result (a residual connection); only the context vectors are asked for."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values + values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersLayerNormAdded(RightLayers):
    """The input is normalised first (layer_norm); attention takes it as it is."""

    def forward(self, x):
        x = torch.nn.functional.layer_norm(x, x.shape[-1:])
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayerWeightsUsedAsMatrices(nn.Module):
    """The product is x @ W_query.weight, stored (d_out, d_in); call the layer, which transposes it: self.W_query(x)."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = (x @ layer.weight for layer in (self.W_query, self.W_key, self.W_value))
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class OneLayerUsedThroughout(nn.Module):
    """Queries, keys and values are all made with W_query; keys have W_key, values W_value."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries = keys = values = self.W_query(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersActivated(nn.Module):
    """A relu follows the layers; queries, keys and values are their plain outputs."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = (torch.relu(layer(x)) for layer in (self.W_query, self.W_key, self.W_value))
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values

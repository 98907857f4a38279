"""Mistakes of the kind "value"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightParameters


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScoresNotScaled(RightParameters):
    """The scores are not scaled: divide them by the square root of the keys' width (d_out) before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScaledByDOut(RightParameters):
    """The scores are divided by the keys' width d_out; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1], dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfDIn(RightParameters):
    """The scores are scaled by the root of d_in, the input's width; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / x.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfTokens(RightParameters):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / x.shape[0] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class SoftmaxOverQueries(RightParameters):
    """The softmax runs over the queries (dim=0), so the columns sum to 1; over the keys, dim=-1, the rows do."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class SoftmaxForgotten(RightParameters):
    """The softmax is missing: the scaled scores themselves are used as weights."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (queries @ keys.T / keys.shape[-1] ** 0.5) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class QueriesAndKeysSwapped(RightParameters):
    """Queries and keys are swapped: row i of the scores should hold query i's, x @ W_query, with every key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(keys @ queries.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class KeysUsedAsValues(RightParameters):
    """The weights are applied to the keys; they belong to the values, x @ W_value."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class QueriesUsedAsKeys(RightParameters):
    """The queries are scored against themselves, or the keys made with W_query; the keys are x @ W_key."""

    def forward(self, x):
        queries, _, values = self.project(x)
        return torch.softmax(queries @ queries.T / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class WeightsTransposed(RightParameters):
    """The attention weights are transposed before they meet the values; each row already belongs to one query."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).T @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class MultipliedByTheRoot(RightParameters):
    """The scores are multiplied by the square root of the keys' width; divide by it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T * keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class RootRoundedDown(RightParameters):
    """The square root of the keys' width is rounded to an integer; divide by it as it is."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / int(keys.shape[-1] ** 0.5), dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class DividedByTokens(RightParameters):
    """The scores are divided by the number of tokens; divide by the square root of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / x.shape[0], dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class DividedByFourthRoot(RightParameters):
    """The scores are divided by the fourth root of the keys' width; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.25, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScaledAfterwards(RightParameters):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T, dim=-1) / keys.shape[-1] ** 0.5 @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class RawScoresAsWeights(RightParameters):
    """The scores are used as weights as they are: scaling and softmax are missing."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return queries @ keys.T @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScoresDividedByTheirSum(RightParameters):
    """The scores are divided by their sum; take a softmax of the scaled scores."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.T
        return scores / scores.sum(dim=-1, keepdim=True) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class SoftmaxOverEverything(RightParameters):
    """The softmax runs over all scores together; each row should sum to 1 on its own: dim=-1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.T / keys.shape[-1] ** 0.5
        return torch.softmax(scores.flatten(), dim=0).view_as(scores) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class SoftmaxTwice(RightParameters):
    """The softmax is applied twice, which flattens the weights; once is right."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class SignReversed(RightParameters):
    """The sign of the scores is reversed, so the worst fit gets the most weight."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(-queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class QueriesUsedAsValues(RightParameters):
    """The weights are applied to the queries; they belong to the values."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ queries


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class InputUsedAsValues(RightParameters):
    """The weights are applied to the input itself; they belong to the values, made with W_value."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ x


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class KeysAgainstThemselves(RightParameters):
    """The keys are scored against themselves, or the queries made with W_key; the queries are x @ W_query."""

    def forward(self, x):
        _queries, keys, values = self.project(x)
        return torch.softmax(keys @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ValuesUsedAsKeys(RightParameters):
    """The queries are scored against the values; score them against the keys."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ values.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class KeysNotTransposed(RightParameters):
    """The keys are not transposed, which fails unless T = d_out: it is queries @ keys.T."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class FeaturesAttend(RightParameters):
    """Columns attend to each other (queries.T @ keys); tokens are rows: queries @ keys.T."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return values @ torch.softmax(queries.T @ keys / keys.shape[-1] ** 0.5, dim=-1)


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class DividedByTheNumberOfTokens(RightParameters):
    """The context vectors are divided by the number of tokens; the weights sum to 1 already."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values / x.shape[0]


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ValuesAdded(RightParameters):
    """The values are added to the result (a residual connection); only the context vectors are asked for."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values + values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class LayerNormAdded(RightParameters):
    """The input is normalised first (layer_norm); attention takes it as it is."""

    def forward(self, x):
        x = torch.nn.functional.layer_norm(x, x.shape[-1:])
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class OneWeightUsedThroughout(nn.Module):
    """Queries, keys and values are all made with W_query; keys have W_key, values W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        queries = keys = values = x @ self.W_query
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values

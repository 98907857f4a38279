"""What goes wrong in `SelfAttention_v2`."""

import torch
from torch import nn

from ...catalogue import misconception
from ..six_words import X


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


@misconception("SelfAttention_v2", kind="value", caught_by="test_bias")
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


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersDetached(RightLayers):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("SelfAttention_v2", kind="initialisation", caught_by="test_context_vectors")
class LayersMadeInForward(nn.Module):
    """The layers are made anew in forward, with new random weights each time; make them once, in __init__."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.d_in, self.d_out, self.qkv_bias = d_in, d_out, qkv_bias

    def forward(self, x):
        queries, keys, values = (nn.Linear(self.d_in, self.d_out, bias=self.qkv_bias).to(x)(x) for _ in range(3))
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


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersWeightsReturned(RightLayers):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)


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


@misconception("SelfAttention_v2", kind="hard-coded output", caught_by="test_context_vectors")
class LayersScaledForWidth2(RightLayers):
    """The scaling is fixed to the root of 2, the example's width; take it from the keys, keys.shape[-1]."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / 2**0.5, dim=-1) @ values


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


@misconception("SelfAttention_v2", kind="edge", caught_by="test_large_scores_do_not_overflow")
class LayersExponentialsOverflow(RightLayers):
    """exp overflows for large scores: subtract each row's maximum first, or use torch.softmax."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        exponentials = torch.exp(queries @ keys.T / keys.shape[-1] ** 0.5)
        return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("SelfAttention_v2", kind="mask", caught_by="test_context_vectors")
class LayersCausalMaskAdded(RightLayers):
    """Later tokens are hidden by a causal mask; here every token attends to all of them."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.T / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        return torch.softmax(scores, dim=-1) @ values


@misconception("SelfAttention_v2", kind="mask", caught_by="test_context_vectors")
class LayersCausalMaskOnTheCpu(RightLayers):
    """Later tokens are hidden; here every token attends to all of them (and the mask is made on the CPU)."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        mask = torch.triu(torch.ones(x.shape[0], x.shape[0]), diagonal=1).bool()
        scores = (queries @ keys.T).masked_fill(mask, -torch.inf)
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="mask", caught_by="test_context_vectors")
class LayersLaterWeightsDropped(RightLayers):
    """Weights above the diagonal are dropped (tril); here every token attends to all of them."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.tril(torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)) @ values


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


@misconception("SelfAttention_v2", kind="edge", caught_by="test_context_vectors")
class LayersResultSqueezed(RightLayers):
    """squeeze() takes away dimensions of size 1, a single token's or a width of 1; leave it out."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).squeeze()


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersTokensAveraged(RightLayers):
    """The context vectors are averaged into one; every token keeps its own: (T, d_out)."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).mean(dim=0)


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


@misconception("SelfAttention_v2", kind="device", caught_by="test_follows_device")
class LayersResultLeftOnTheCpu(RightLayers):
    """The result ends on the CPU, whatever device the module is on."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).cpu()


@misconception("SelfAttention_v2", kind="device", caught_by="test_follows_device")
class LayersFilledIntoFloat32Zeros(RightLayers):
    """The result is filled into torch.zeros or torch.empty, float32 on the CPU; weights @ values has the right
    dtype and device.
    """

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)
        context = torch.zeros(values.shape)
        for i, row in enumerate(weights):
            context[i] = row @ values
        return context


@misconception("SelfAttention_v2", kind="dtype", caught_by="test_float64_stays_exact")
class LayersResultInFloat32(RightLayers):
    """The context vectors are float32 even for a float64 module, so digits are lost; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).float()


@misconception("SelfAttention_v2", kind="device", caught_by="test_follows_device")
class LayersCpuTensorMade(RightLayers):
    """A tensor that the module makes stays on the CPU when the module moves; use a number, or x's device."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scale = torch.full((x.shape[0], x.shape[0]), keys.shape[-1], dtype=x.dtype).sqrt()
        return torch.softmax(queries @ keys.T / scale, dim=-1) @ values


@misconception("SelfAttention_v2", kind="gradient", caught_by="test_gradients_reach_every_weight")
class LayersInputDetached(RightLayers):
    """The input is detached, so no gradient flows back to it."""

    def forward(self, x):
        x = x.detach()
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="side effect", caught_by="test_inputs_are_unchanged")
class LayersInputCentredInPlace(RightLayers):
    """The input itself is changed in forward (`-=`, `/=`); attention takes it as it is, and leaves it so."""

    def forward(self, x):
        x -= x.mean(dim=0)
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="contract", caught_by="test_context_vectors")
class LayersSixWordsAttend(RightLayers):
    """forward uses the notebook's X, not the input that is passed in."""

    def forward(self, x):
        x = X
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="dtype", caught_by="test_float64_stays_exact")
class LayersAnotherInputDtype(RightLayers):
    """The input is turned to float32 in forward, which fails once the module is float64; leave its dtype alone."""

    def forward(self, x):
        x = x.float()
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="value", caught_by="test_context_vectors")
class LayersLayerNormAdded(RightLayers):
    """The input is normalised first (layer_norm); attention takes it as it is."""

    def forward(self, x):
        x = torch.nn.functional.layer_norm(x, x.shape[-1:])
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
    """W_value is frozen (requires_grad=False), so that it never learns."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value.requires_grad_(False)


@misconception("SelfAttention_v2", kind="dtype", caught_by="test_context_vectors")
class LayersInFloat64(RightPass):
    """The layers are float64, which does not go with float32 inputs; leave nn.Linear its default dtype."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias, dtype=torch.float64)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias, dtype=torch.float64)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias, dtype=torch.float64)


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


@misconception("SelfAttention_v2", kind="hard-coded output", caught_by="test_context_vectors")
class WorkedExampleTypedInAgain(nn.Module):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        rows = [
            [-0.0739, 0.0713],
            [-0.0748, 0.0703],
            [-0.0749, 0.0702],
            [-0.0760, 0.0685],
            [-0.0763, 0.0679],
            [-0.0754, 0.0693],
        ]
        return torch.tensor(rows)


@misconception("SelfAttention_v2", kind="dropout", caught_by="test_context_vectors")
class LayersDropoutAdded(RightLayers):
    """Dropout is applied to the attention weights; this module has none."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.nn.functional.dropout(
            torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), 0.1, self.training
        )
        return weights @ values


@misconception("SelfAttention_v2", kind="dropout", caught_by="test_context_vectors")
class LayersDropoutOfHalfAdded(RightLayers):
    """Half of the attention weights are dropped at random; this module has no dropout."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.nn.functional.dropout(
            torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), 0.5, self.training
        )
        return weights @ values

"""What goes wrong in `SelfAttention_v1`."""

import torch
from torch import nn

from ...catalogue import misconception
from ..six_words import X


class RightParameters(nn.Module):
    """The parameters as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def project(self, x):
        return x @ self.W_query, x @ self.W_key, x @ self.W_value


class RightForward(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their parameters."""

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


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


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class NormalWeights(RightForward):
    """The weights come from torch.randn (normal); the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.randn(d_in, d_out))
        self.W_key = nn.Parameter(torch.randn(d_in, d_out))
        self.W_value = nn.Parameter(torch.randn(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class CreatedInAnotherOrder(RightForward):
    """The weights are created in another order; under a fixed seed W_query comes first, then W_key, then W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


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


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_parameters")
class WeightsNotRegistered(RightForward):
    """The weights are plain tensors, which no optimizer finds; wrap each in nn.Parameter."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.rand(d_in, d_out)
        self.W_key = torch.rand(d_in, d_out)
        self.W_value = torch.rand(d_in, d_out)


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class WeightsFrozen(RightForward):
    """No gradient reaches the weights: they are frozen (requires_grad=False) or detached (`.detach()`, `.data`)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightParameters):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("SelfAttention_v1", kind="hard-coded output", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightParameters):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def forward(self, x):
        rows = [
            [0.2996, 0.8053],
            [0.3061, 0.8210],
            [0.3058, 0.8203],
            [0.2948, 0.7939],
            [0.2927, 0.7891],
            [0.2990, 0.8040],
        ]
        return torch.tensor(rows)


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class WeightsReturned(RightParameters):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_float64_stays_exact")
class InputInFloat32(RightParameters):
    """The context vectors are float32 even for a float64 module, so digits are lost; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = (
            x.float() @ self.W_query.float(),
            x.float() @ self.W_key.float(),
            x.float() @ self.W_value.float(),
        )
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seeds_matter")
class SeedSetInside(RightForward):
    """A seed is set inside __init__, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out):
        super().__init__()
        torch.manual_seed(123)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="device", caught_by="test_follows_device")
class ScaleLeftOnTheCpu(RightParameters):
    """A tensor that the module makes stays on the CPU when the module moves; use a number, or x's device."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scale = torch.full((x.shape[0], x.shape[0]), keys.shape[-1], dtype=x.dtype).sqrt()
        return torch.softmax(queries @ keys.T / scale, dim=-1) @ values


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


@misconception("SelfAttention_v1", kind="hard-coded output", caught_by="test_context_vectors")
class ScaledForWidth2(RightParameters):
    """The scaling is fixed to the root of 2, the example's width; take it from the keys, keys.shape[-1]."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / 2**0.5, dim=-1) @ values


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


@misconception("SelfAttention_v1", kind="edge", caught_by="test_large_scores_do_not_overflow")
class ExponentialsOverflow(RightParameters):
    """exp overflows for large scores: subtract each row's maximum first, or use torch.softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        exponentials = torch.exp(queries @ keys.T / keys.shape[-1] ** 0.5)
        return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("SelfAttention_v1", kind="mask", caught_by="test_context_vectors")
class CausalMaskAdded(RightParameters):
    """Later tokens are hidden by a causal mask; here every token attends to all of them."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.T / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        return torch.softmax(scores, dim=-1) @ values


@misconception("SelfAttention_v1", kind="mask", caught_by="test_context_vectors")
class CausalMaskOnTheCpu(RightParameters):
    """Later tokens are hidden; here every token attends to all of them (and the mask is made on the CPU)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        mask = torch.triu(torch.ones(x.shape[0], x.shape[0]), diagonal=1).bool()
        scores = (queries @ keys.T).masked_fill(mask, -torch.inf)
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="mask", caught_by="test_context_vectors")
class LaterWeightsDropped(RightParameters):
    """Weights above the diagonal are dropped (tril); here every token attends to all of them."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.tril(torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)) @ values


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


@misconception("SelfAttention_v1", kind="edge", caught_by="test_context_vectors")
class ResultSqueezed(RightParameters):
    """squeeze() takes away dimensions of size 1, a single token's or a width of 1; leave it out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).squeeze()


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class TokensAveraged(RightParameters):
    """The context vectors are averaged into one; every token keeps its own: (T, d_out)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).mean(dim=0)


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


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ValuesDetached(RightParameters):
    """The values are detached, so no gradient reaches W_value."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values.detach()


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class KeysDetached(RightParameters):
    """The keys are detached, so no gradient reaches W_key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T.detach() / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class QueriesDetached(RightParameters):
    """The queries are detached, so no gradient reaches W_query."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries.detach() @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ResultDetached(RightParameters):
    """The result carries no gradient (`.detach()`, `.data`, torch.no_grad()), so nothing can learn."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).detach()


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ResultThroughNumpy(RightParameters):
    """The result is rebuilt from numbers (NumPy), so that no gradient flows back."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.from_numpy(
            (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).detach().numpy()
        )


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_float64_stays_exact")
class WeightsThroughFloat32(RightParameters):
    """The attention weights pass through float32, so a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.T / keys.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1, dtype=torch.float32).to(x.dtype) @ values


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_dtype_is_kept")
class ResultInFloat64(RightParameters):
    """The context vectors are float64 even for a float32 input; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).double()


@misconception("SelfAttention_v1", kind="device", caught_by="test_follows_device")
class ResultLeftOnTheCpu(RightParameters):
    """The result ends on the CPU, whatever device the module is on."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).cpu()


@misconception("SelfAttention_v1", kind="device", caught_by="test_follows_device")
class FilledIntoFloat32Zeros(RightParameters):
    """The result is filled into torch.zeros or torch.empty, float32 on the CPU; weights @ values has the right
    dtype and device.
    """

    def forward(self, x):
        queries, keys, values = self.project(x)
        weights = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)
        context = torch.zeros(values.shape)
        for i, row in enumerate(weights):
            context[i] = row @ values
        return context


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class InputDetached(RightParameters):
    """The input is detached, so no gradient flows back to it."""

    def forward(self, x):
        x = x.detach()
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="side effect", caught_by="test_inputs_are_unchanged")
class InputCentredInPlace(RightParameters):
    """The input itself is changed in forward (`-=`, `/=`); attention takes it as it is, and leaves it so."""

    def forward(self, x):
        x -= x.mean(dim=0)
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class SixWordsAttend(RightParameters):
    """forward uses the notebook's X, not the input that is passed in."""

    def forward(self, x):
        x = X
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_float64_stays_exact")
class AnotherInputDtype(RightParameters):
    """The input is turned to float32 in forward, which fails once the module is float64; leave its dtype alone."""

    def forward(self, x):
        x = x.float()
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class LayerNormAdded(RightParameters):
    """The input is normalised first (layer_norm); attention takes it as it is."""

    def forward(self, x):
        x = torch.nn.functional.layer_norm(x, x.shape[-1:])
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


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class ValueBeforeKey(RightForward):
    """W_value is created before W_key; under a fixed seed the order is W_query, W_key, W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class CreatedBackwards(RightForward):
    """The weights are created backwards; under a fixed seed the order is W_query, W_key, W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsOfZero(RightForward):
    """The weights start as zeros, from which W_query and W_key can not learn; draw them with torch.rand."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.zeros(d_in, d_out))
        self.W_key = nn.Parameter(torch.zeros(d_in, d_out))
        self.W_value = nn.Parameter(torch.zeros(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsOfOne(RightForward):
    """The weights all start as ones, so that all columns stay alike; draw them with torch.rand."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.ones(d_in, d_out))
        self.W_key = nn.Parameter(torch.ones(d_in, d_out))
        self.W_value = nn.Parameter(torch.ones(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsAroundZero(RightForward):
    """The weights are moved to lie around 0; the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out) - 0.5)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out) - 0.5)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out) - 0.5)


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsBetweenMinusOneAndOne(RightForward):
    """The weights are drawn between -1 and 1; the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.empty(d_in, d_out).uniform_(-1, 1))
        self.W_key = nn.Parameter(torch.empty(d_in, d_out).uniform_(-1, 1))
        self.W_value = nn.Parameter(torch.empty(d_in, d_out).uniform_(-1, 1))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsMadeSmaller(RightForward):
    """The weights are divided by a square root; the exercise takes torch.rand(d_in, d_out) as it is."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out) / d_in**0.5)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out) / d_in**0.5)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out) / d_in**0.5)


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsByXavier(RightForward):
    """The weights are drawn by Xavier's rule; the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_in, d_out)))
        self.W_key = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_in, d_out)))
        self.W_value = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_in, d_out)))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class ThreeTimesTheSameWeights(RightForward):
    """All three start from the same random numbers; draw each with torch.rand on its own."""

    def __init__(self, d_in, d_out):
        super().__init__()
        W = torch.rand(d_in, d_out)
        self.W_query = nn.Parameter(W.clone())
        self.W_key = nn.Parameter(W.clone())
        self.W_value = nn.Parameter(W.clone())


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_parameters")
class OneWeightForAll(RightForward):
    """One parameter serves as W_query, W_key and W_value; each is a parameter of its own."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = self.W_value = self.W_query


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_parameters")
class QueryWeightsForKeys(RightForward):
    """W_key is the same parameter as W_query; each is a parameter of its own."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = self.W_query
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_parameters")
class WeightsAsBuffers(RightForward):
    """The module has no parameters: its weights are buffers, or made anew in forward; make each an nn.Parameter in
    __init__.
    """

    def __init__(self, d_in, d_out):
        super().__init__()
        self.register_buffer("W_query", torch.rand(d_in, d_out))
        self.register_buffer("W_key", torch.rand(d_in, d_out))
        self.register_buffer("W_value", torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class SquareValueWeights(RightForward):
    """W_value has shape (d_in, d_in); like the others it is (d_in, d_out)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_in))


@misconception("SelfAttention_v1", kind="hard-coded output", caught_by="test_context_vectors")
class WeightsForTheExampleOnly(RightForward):
    """The weights are always 3 x 2, as in the example; use d_in and d_out."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(3, 2))
        self.W_key = nn.Parameter(torch.rand(3, 2))
        self.W_value = nn.Parameter(torch.rand(3, 2))


@misconception("SelfAttention_v1", kind="contract", caught_by="test_context_vectors")
class WeightsStoredTheOtherWay(RightForward):
    """The weights have shape (d_out, d_in), so that x @ W_query fails; they are (d_in, d_out)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_out, d_in))
        self.W_key = nn.Parameter(torch.rand(d_out, d_in))
        self.W_value = nn.Parameter(torch.rand(d_out, d_in))


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_context_vectors")
class WeightsInFloat64(RightForward):
    """The weights are float64, which does not go with float32 inputs; leave torch.rand its default dtype."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out, dtype=torch.float64))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out, dtype=torch.float64))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out, dtype=torch.float64))


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


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class FrozenValueWeights(nn.Module):
    """W_value is frozen (requires_grad=False), so that it never learns."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value.requires_grad_(False)

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
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


@misconception("SelfAttention_v1", kind="dropout", caught_by="test_context_vectors")
class DropoutAdded(RightParameters):
    """Dropout is applied to the attention weights; this module has none."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        weights = torch.nn.functional.dropout(
            torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), 0.1, self.training
        )
        return weights @ values


@misconception("SelfAttention_v1", kind="dropout", caught_by="test_context_vectors")
class DropoutOfHalfAdded(RightParameters):
    """Half of the attention weights are dropped at random; this module has no dropout."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        weights = torch.nn.functional.dropout(
            torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), 0.5, self.training
        )
        return weights @ values

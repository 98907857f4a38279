"""What goes wrong in `CausalAttention`."""

import torch
import torch.nn.functional as F
from torch import nn

from ...catalogue import misconception


class RightInit(nn.Module):
    """Layers, mask and dropout as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x)

    def hidden(self, scores):
        return self.mask[: scores.shape[-2], : scores.shape[-1]]


class RightPass(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their layers, mask or dropout."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class NotMasked(RightInit):
    """Nothing is masked: every token attends to the ones after it; make those scores -inf before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class SeesTheNextToken(RightInit):
    """Each token still sees the one right after it; the mask starts one above the diagonal: diagonal=1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=2).bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class DoesNotSeeItself(RightInit):
    """The diagonal is masked too: no token sees itself, and the first one's row, all -inf, is NaN; use diagonal=1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).triu().bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class SeesOnlyTheFuture(RightInit):
    """The past is masked and the future left visible; hide what is above the diagonal."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).tril(diagonal=-1).bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskInverted(RightInit):
    """The visible scores, diagonal included, are masked instead of the hidden ones; turn the mask round (`~mask`)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(~self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class HiddenBecomeZero(RightInit):
    """Hidden scores become 0 or nearly so (times a mask, 1e-9), and exp(0) = 1 is no small weight; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), 0.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class HiddenBecomeMinusOne(RightInit):
    """Hidden scores become -1, which still gives weight to the future; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -1.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class HiddenBecomeMinusTen(RightInit):
    """Hidden scores become -10, which still gives weight to the future; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -10.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class HiddenBecomePlusInfinity(RightInit):
    """Hidden scores become plus infinity, and softmax of that is NaN; it is minus infinity."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskedAfterSoftmax(RightInit):
    """The future is set to zero after the softmax, so rows no longer sum to 1; mask the scores with -inf before it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1).tril()) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScoresNotScaled(RightInit):
    """The scores are not scaled: divide them by the square root of the keys' width (d_out) before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledByDOut(RightInit):
    """The scores are divided by the keys' width d_out; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1], dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfDIn(RightInit):
    """The scores are scaled by the root of d_in, the input's width; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / x.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfTokens(RightInit):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / x.shape[1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledAfterSoftmax(RightInit):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1) / keys.shape[-1] ** 0.5) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class SoftmaxOverQueries(RightInit):
    """The softmax runs over the queries (dim=1 or -2); each query's weights are a row: dim=-1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class SoftmaxOverTheBatch(RightInit):
    """The softmax runs over the batch (dim=0); each query's weights are a row: dim=-1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=0)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class KeysUsedAsValues(RightInit):
    """The weights are applied to the keys; they belong to the values, W_value(x)."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ keys


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class QueriesAndKeysSwapped(RightInit):
    """Queries and keys are swapped in the product: row i of the scores should belong to query i."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = keys @ queries.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class WeightsReturned(RightInit):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class KeysTransposedInTheWrongDimensions(RightInit):
    """transpose(0, 1) swaps batch and tokens of the keys; swap the last two dimensions: transpose(-2, -1)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(0, 1)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class FirstSequenceForAll(RightInit):
    """Every sequence attends to the first one's keys and values; keep the batch dimension."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys[0].T
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values[0]


@misconception("CausalAttention", kind="edge", caught_by="test_context_vectors")
class BatchOfOneSqueezed(RightInit):
    """`squeeze()` drops every dimension of size 1, a batch or a sequence of one too; leave it out or name the dim."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return (self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values).squeeze()


@misconception("CausalAttention", kind="contract", caught_by="test_context_vectors")
class FirstSequenceOnly(RightInit):
    """Only the first sequence's result is returned, (T, d_out); the whole batch is expected, (b, T, d_out)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return (self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values)[0]


@misconception("CausalAttention", kind="edge", caught_by="test_fewer_tokens_than_context_length")
class WholeMaskUsed(RightInit):
    """The mask is not cut to the sequence, so that ones shorter than context_length fail; cut it to [:T, :T]."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask, float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_after_eval")
class MaskOnlyInTraining(RightInit):
    """The future is hidden in training only; a causal model hides it after eval() too."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        if self.training:
            scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskOnlyAfterEval(RightInit):
    """The future is hidden after eval() only; hide it in training too."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        if not self.training:
            scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutForgotten(RightInit):
    """Nothing is dropped in training: put the weights through nn.Dropout(dropout) after the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_after_eval")
class DropoutAfterEvalToo(RightInit):
    """Weights are dropped after eval() too: F.dropout needs training=self.training; nn.Dropout switches by itself."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return F.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1), self.dropout.p) @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnlyAfterEval(RightInit):
    """Weights are dropped after eval() and kept in training; it is the other way round."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return (
            F.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1), self.dropout.p, not self.training) @ values
        )


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheScores(RightInit):
    """Dropout is on the scores, where a dropped one becomes 0 and keeps its weight; it comes after the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(self.dropout(scores) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheOutput(RightInit):
    """Dropout is on the context vectors; it belongs on the weights, before they meet the values."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values)


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheValues(RightInit):
    """Dropout is on the values; it belongs on the weights after the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ self.dropout(values)


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class AnotherShareDropped(RightInit):
    """Another share than `dropout` of the weights is dropped: is dropout applied twice, or with a fixed number?"""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))) @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnWeightsAndOutput(RightInit):
    """Dropout is on the weights and on the context vectors as well; on the weights alone is right."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values)


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheInput(RightInit):
    """Dropout is on the input x; it belongs on the weights after the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(self.dropout(x))
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class KeptWeightsNotRescaled(RightInit):
    """The kept weights are as they were; divide them by 1 - dropout, as nn.Dropout does."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout.p)
        return weights @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class KeptWithProbabilityP(RightInit):
    """Weights are kept with probability `dropout`; that is the probability that one is dropped."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = F.dropout(weights, 1 - self.dropout.p, self.training and self.dropout.p > 0)
        return weights @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class RowsSumToOneAgain(RightInit):
    """The rows are made to sum to 1 after dropout; what nn.Dropout returns is used as it is."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class SameKeysDroppedForEveryQuery(RightInit):
    """One draw for the keys serves all queries, so whole columns are dropped; draw for each weight: nn.Dropout."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = weights * self.dropout(torch.ones_like(weights[:, :1]))
        return weights @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class SameDropForEverySequence(RightInit):
    """One draw serves all sequences of a batch; draw for each weight of each of them: nn.Dropout on the weights."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = weights * self.dropout(torch.ones_like(weights[0]))
        return weights @ values


@misconception("CausalAttention", kind="dropout", caught_by="test_drawn_anew")
class SeedSetInForward(RightInit):
    """A seed is set inside forward, so that every call drops the same weights; leave seeds to the caller."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        torch.manual_seed(123)
        weights = self.dropout(weights)
        return weights @ values


@misconception("CausalAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightInit):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights.detach())
        return weights @ values


@misconception("CausalAttention", kind="dtype", caught_by="test_float64_stays_exact")
class InputInFloat32(RightInit):
    """Something is turned to float32 in forward, so that a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = (projected.float() for projected in self.project(x))
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="side effect", caught_by="test_inputs_are_unchanged")
class InputScaledInPlace(RightInit):
    """The input x is changed in place (`*=`, `/=`, a method ending in `_`); make a new tensor instead."""

    def forward(self, x):
        keys, values = self.W_key(x.clone()), self.W_value(x.clone())
        x /= keys.shape[-1] ** 0.5
        scores = (x @ self.W_query.weight.T) @ keys.transpose(1, 2)
        if self.W_query.bias is not None:
            scores = scores + (self.W_query.bias / keys.shape[-1] ** 0.5) @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1)) @ values


@misconception("CausalAttention", kind="hard-coded output", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightInit):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def forward(self, x):
        rows = [
            [-0.4519, 0.2216],
            [-0.5874, 0.0058],
            [-0.6300, -0.0632],
            [-0.5675, -0.0843],
            [-0.5526, -0.0981],
            [-0.5299, -0.1081],
        ]
        return torch.tensor([rows, rows])


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class ExponentialsOverflow(RightInit):
    """exp leaves the range of floats for large scores: subtract each row's maximum first, or use torch.softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        exponentials = torch.exp(queries @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5).tril()
        return self.dropout(exponentials / exponentials.sum(dim=-1, keepdim=True)) @ values


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


@misconception("CausalAttention", kind="device", caught_by="test_follows_device")
class MaskIsNoBuffer(RightPass):
    """The mask stays on the CPU when the module moves: register it as a buffer, or make it on the device of x."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.ones(context_length, context_length).triu(diagonal=1).bool()


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


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskOfTheWrongWidth(RightPass):
    """The mask has d_out tokens; a sequence has up to context_length."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(d_out, d_out).triu(diagonal=1).bool())


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


class RightWeights(RightInit):
    """Causal weights and values as they should be; the entries that build on it differ in what they do with them."""

    def weigh(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1), values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledWithoutParentheses(RightInit):
    """x / d_out**1/2 divides by d_out and then by 2, from left to right; write d_out**0.5 or math.sqrt(d_out)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 1 / 2, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScoresMultiplied(RightInit):
    """The scores are multiplied by the root of the keys' width; divide them by it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores * keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfContextLength(RightInit):
    """The scores are scaled by the root of context_length; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / len(self.mask) ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class KeysFromTheQueryLayer(RightInit):
    """The keys are the queries: each has a layer of its own, W_query(x) and W_key(x)."""

    def forward(self, x):
        queries, values = self.W_query(x), self.W_value(x)
        keys = queries
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class InputAsValues(RightInit):
    """The weights are applied to x itself; they belong to the values, W_value(x)."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), x
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="value", caught_by="test_context_vectors")
class KeysReshaped(RightInit):
    """view or reshape turns the keys into (b, d_out, T) without swapping anything; use transpose(-2, -1)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.reshape(len(x), -1, x.shape[1])
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class FirstSequenceMasked(RightInit):
    """Only the first sequence of a batch is masked; one mask serves all of them."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = torch.cat([scores[:1].masked_fill(self.hidden(scores), float("-inf")), scores[1:]])
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskAdded(RightInit):
    """The mask's zeros and ones are added to the scores, which hides nothing; make hidden ones -inf: masked_fill."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores + self.hidden(scores)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskTimesInfinity(RightInit):
    """The mask is multiplied by infinity, and 0 times infinity is NaN; use masked_fill or torch.where."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores + self.hidden(scores) * float("-inf")
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class MaskBelowTheDiagonal(RightInit):
    """What is on the diagonal, below it and one above is hidden: torch.tril for torch.triu; hide what is above."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).tril(diagonal=1).bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_fewer_tokens_than_context_length")
class MaskCutFromTheEnd(RightInit):
    """The mask's last rows are used for a shorter sequence, which hide too little; cut it to [:T, :T]."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[-x.shape[1] :, : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_fewer_tokens_than_context_length")
class FullLengthDemanded(RightInit):
    """Sequences shorter than context_length are refused; any length up to it is right."""

    def forward(self, x):
        if x.shape[1] != len(self.mask):
            raise ValueError("not context_length")
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="mask", caught_by="test_context_vectors")
class LibraryMaskInverted(RightInit):
    """scaled_dot_product_attention attends where its attn_mask is True; hand it ~mask, or is_causal=True."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        p = self.dropout.p if self.training else 0.0
        return F.scaled_dot_product_attention(queries, keys, values, self.hidden(queries @ keys.transpose(1, 2)), p)


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class HiddenBecomeMinusHundred(RightInit):
    """Hidden scores become -100, and real scores can be lower than that; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -100.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class HiddenBecomeMinusThousand(RightInit):
    """Hidden scores become -1000, and real scores can be lower than that; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -1e3)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class HiddenBecomeMinusTenThousand(RightInit):
    """Hidden scores become -10000, and real scores can be lower than that; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -1e4)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_large_scores")
class RenormalizedAfterSoftmax(RightInit):
    """Masked after the softmax, a row can be 0/0 where the future outweighs the rest; mask the scores before it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1).tril()
        return self.dropout(weights / weights.sum(dim=-1, keepdim=True)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_scores_of_zero")
class ZerosTakenForHidden(RightInit):
    """Every score that is 0 becomes -inf, a visible one too; ask the mask, not the scores, what is hidden."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = (queries @ keys.transpose(1, 2)).tril()
        scores = scores.masked_fill(scores == 0, float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="edge", caught_by="test_context_vectors")
class FirstDimensionSqueezed(RightWeights):
    """`squeeze(0)` takes the batch dimension from a batch of one; leave it out."""

    def forward(self, x):
        weights, values = self.weigh(x)
        return (self.dropout(weights) @ values).squeeze(0)


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


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class WholeRowsDropped(RightWeights):
    """Dropout of whole rows (nn.Dropout1d): a query loses all of its weights at once; use nn.Dropout."""

    def forward(self, x):
        weights, values = self.weigh(x)
        return F.dropout1d(weights, self.dropout.p, self.training) @ values


@misconception("CausalAttention", kind="gradient", caught_by="test_gradients_with_dropout")
class DropoutInPlace(RightWeights):
    """Dropout writes into the softmax's result (inplace=True), which the gradient needs; leave inplace out."""

    def forward(self, x):
        weights, values = self.weigh(x)
        return F.dropout(weights, self.dropout.p, self.training, inplace=True) @ values


@misconception("CausalAttention", kind="initialisation", caught_by="test_bias")
class BiasUnused(RightInit):
    """The layers have a bias that forward leaves out; call the layers, W_query(x), not their weights alone."""

    def forward(self, x):
        queries, keys, values = (F.linear(x, layer.weight) for layer in (self.W_query, self.W_key, self.W_value))
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="dtype", caught_by="test_float64_stays_exact")
class SoftmaxInFloat32(RightInit):
    """The weights are computed in float32 and turned back, so a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores.float() / keys.shape[-1] ** 0.5, dim=-1).to(values.dtype)
        return self.dropout(weights) @ values


@misconception("CausalAttention", kind="dtype", caught_by="test_context_vectors")
class SoftmaxInHalfPrecision(RightInit):
    """The weights are computed in half precision, which is good for three digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores.half() / keys.shape[-1] ** 0.5, dim=-1).to(values.dtype)
        return self.dropout(weights) @ values


@misconception("CausalAttention", kind="dtype", caught_by="test_float64_stays_exact")
class InputTurnedToFloat32(RightInit):
    """x is turned to float32, which the layers of a float64 module refuse; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x.float())
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ContextThroughNumpy(RightWeights):
    """The context vectors are computed in NumPy, where no gradient follows; weights @ values does the same."""

    def forward(self, x):
        weights, values = self.weigh(x)
        return torch.from_numpy(self.dropout(weights).detach().numpy() @ values.detach().numpy())


@misconception("CausalAttention", kind="dropout", caught_by="test_context_vectors")
class HalfAlwaysDropped(RightPass):
    """Half of the weights are dropped whatever `dropout` is (nn.Dropout's default): nn.Dropout(dropout)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout()
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="dropout", caught_by="test_context_vectors")
class TenthAlwaysDropped(RightPass):
    """A tenth of the weights is dropped whatever `dropout` is; pass it on: nn.Dropout(dropout)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", kind="dropout", caught_by="test_context_vectors")
class ComplementPassedToDropout(RightPass):
    """1 - dropout is passed to nn.Dropout; it takes the probability that a weight is dropped: nn.Dropout(dropout)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(1 - dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


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

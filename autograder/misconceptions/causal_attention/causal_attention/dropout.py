"""Mistakes of the kind "dropout"."""

import torch
import torch.nn.functional as F
from torch import nn

from ....catalogue import misconception
from .right import RightInit, RightPass, RightWeights


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
class DiagonalSpared(RightInit):
    """A token's weight on itself is never dropped, so that no row is left empty; it may be dropped like any other."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        itself = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
        kept = weights / (1 - self.dropout.p) if self.training else weights
        return torch.where(itself, kept, self.dropout(weights)) @ values


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


@misconception("CausalAttention", kind="dropout", caught_by="test_dropout_in_training")
class WholeRowsDropped(RightWeights):
    """Dropout of whole rows (nn.Dropout1d): a query loses all of its weights at once; use nn.Dropout."""

    def forward(self, x):
        weights, values = self.weigh(x)
        return F.dropout1d(weights, self.dropout.p, self.training) @ values


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

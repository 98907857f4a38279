"""Mistakes of the kind "dropout"."""

import torch
import torch.nn.functional as F
from torch import nn

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutIgnored(RightHeads):
    """Nothing is dropped in training: apply nn.Dropout(dropout) to the weights after the softmax."""

    def attend(self, queries, keys, values):
        return self.weigh(self.hide(queries @ keys.mT)) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_no_dropout_in_evaluation")
class DropoutAlwaysOn(RightHeads):
    """Weights are dropped in evaluation too; nn.Dropout stops by itself, F.dropout needs training=self.training."""

    def attend(self, queries, keys, values):
        return F.dropout(self.weigh(self.hide(queries @ keys.mT)), self.dropout.p) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_no_dropout_in_evaluation")
class DropoutInEvaluationOnly(RightHeads):
    """Weights are dropped in evaluation and not in training; it is the other way round."""

    def attend(self, queries, keys, values):
        weights = self.weigh(self.hide(queries @ keys.mT))
        return F.dropout(weights, self.dropout.p, training=not self.training) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutNotRescaled(RightHeads):
    """The kept weights stay as they are; divide them by 1 - p, as nn.Dropout does, so that their sum stays the same."""

    def attend(self, queries, keys, values):
        weights = self.weigh(self.hide(queries @ keys.mT))
        if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout.p)
        return weights @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutRenormalised(RightHeads):
    """The kept weights are made to sum to 1 in each row; dropout divides them by 1 - p and leaves it at that."""

    def attend(self, queries, keys, values):
        weights = self.dropout(self.weigh(self.hide(queries @ keys.mT)))
        return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DroppedTwice(RightHeads):
    """Dropout is applied to the weights twice, so that more than p is dropped; once is enough."""

    def attend(self, queries, keys, values):
        return self.dropout(self.dropout(self.weigh(self.hide(queries @ keys.mT)))) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutKeepsP(RightHeads):
    """p and 1 - p are exchanged: `dropout` is the probability with which a weight is dropped, not kept."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.dropout = nn.Dropout(1 - dropout)


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOfAHalf(RightHeads):
    """Dropout has a probability of its own (nn.Dropout() drops a half); pass the argument: nn.Dropout(dropout)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.dropout = nn.Dropout()


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheScores(RightHeads):
    """Dropout comes before the softmax, so what it drops still gets weight; drop the weights, after the softmax."""

    def attend(self, queries, keys, values):
        return self.weigh(self.hide(self.dropout(queries @ keys.mT))) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnNumbers(RightHeads):
    """Dropout falls on the context vectors or the output; it belongs on the weights, after the softmax."""

    def attend(self, queries, keys, values):
        return self.dropout(self.weigh(self.hide(queries @ keys.mT)) @ values)


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutSharedByHeads(RightHeads):
    """All heads of all sequences drop the same weights, by one mask of (T, T); drop from all the weights."""

    def attend(self, queries, keys, values):
        weights = self.weigh(self.hide(queries @ keys.mT))
        return weights * self.dropout(torch.ones_like(weights[0, 0])) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_each_call_drops_anew")
class SeedSetInForward(RightHeads):
    """A seed is set in forward, so that every call drops the same weights; leave seeds to the caller."""

    def forward(self, x):
        torch.manual_seed(123)
        return super().forward(x)


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheValues(RightHeads):
    """Numbers of the values are dropped; dropout belongs on the weights, after the softmax."""

    def attend(self, queries, keys, values):
        return self.weigh(self.hide(queries @ keys.mT)) @ self.dropout(values)


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheResultToo(RightHeads):
    """Dropout falls on the weights and again on the context vectors or the output; here it belongs on the weights
    alone."""

    def forward(self, x):
        return self.dropout(super().forward(x))


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_no_dropout_in_evaluation")
class DropoutScaledInEvaluation(RightHeads):
    """Kept weights are not divided by 1 - p in training, and all are multiplied by it in evaluation; nn.Dropout
    divides in training."""

    def attend(self, queries, keys, values):
        weights, p = self.weigh(self.hide(queries @ keys.mT)), self.dropout.p
        return (weights * (torch.rand_like(weights) >= p) if self.training else weights * (1 - p)) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutSharedByTheBatch(RightHeads):
    """All sequences of the batch drop the same weights; apply dropout to all the weights, (b, h, T, T)."""

    def attend(self, queries, keys, values):
        weights = self.weigh(self.hide(queries @ keys.mT))
        return weights * self.dropout(torch.ones_like(weights[:1])) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOfOneHeadForAll(RightHeads):
    """The heads of a sequence drop the same weights; apply dropout to all the weights, (b, h, T, T)."""

    def attend(self, queries, keys, values):
        weights = self.weigh(self.hide(queries @ keys.mT))
        return weights * self.dropout(torch.ones_like(weights[:, :1])) @ values


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheMaskedScores(RightHeads):
    """Weights become NaN under dropout, as where masked scores are dropped (0 times -inf); drop the weights, after the
    softmax, with nn.Dropout."""

    def attend(self, queries, keys, values):
        return self.weigh(self.dropout(self.hide(queries @ keys.mT))) @ values

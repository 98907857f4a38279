"""Mistakes of the kind "mask"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskMissing(RightHeads):
    """Tokens see later ones: before the softmax, replace the scores of later keys by -inf."""

    def hide(self, scores):
        return scores


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskHidesTheTokenItself(RightHeads):
    """The mask hides each token from itself, so that the first sees nothing (NaN); it starts above the diagonal."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=0).bool())


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskLetsTheNextTokenThrough(RightHeads):
    """Each token sees the next one: the mask starts one above the diagonal, triu(diagonal=1)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=2).bool())


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskHidesEarlierTokens(RightHeads):
    """Earlier tokens are hidden and later ones seen; it is the other way round: hide what is above the diagonal."""

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]].T, -torch.inf)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskTurnedRound(RightHeads):
    """What should be seen is hidden, and later tokens are seen; turn the mask round (`~mask`, or tril for triu)."""

    def hide(self, scores):
        return scores.masked_fill(~self.mask[: scores.shape[-2], : scores.shape[-1]], -torch.inf)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskAfterSoftmax(RightHeads):
    """Weights of later keys are set to 0 after the softmax, so rows no longer sum to 1; put -inf into the scores."""

    def hide(self, scores):
        return scores

    def weigh(self, scores):
        return super().weigh(scores).masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], 0.0)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskedWithZeros(RightHeads):
    """Scores of later keys become 0, which softmax still gives weight; replace them by -inf."""

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], 0.0)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskedWithMinusOne(RightHeads):
    """The mask is subtracted as 0 and 1, which hardly lowers the scores of later keys; replace them by -inf."""

    def hide(self, scores):
        return scores - self.mask[: scores.shape[-2], : scores.shape[-1]].to(scores.dtype)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_large_scores_do_not_overflow")
class FiniteFillLeaks(RightHeads):
    """Later keys get a finite score, such as -100 or -1e4; where all others fall below it, they are seen: use -inf."""

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], -100.0)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_shorter_sequences")
class ContextLengthForTokens(RightHeads):
    """context_length stands where the number of tokens belongs; cut the mask to the sequence: mask[:T, :T]."""

    def hide(self, scores):
        return scores.masked_fill(self.mask, -torch.inf)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_shorter_sequences")
class LastRowsOfTheMask(RightHeads):
    """A shorter sequence gets the wrong part of the mask; take its first T rows and columns: mask[:T, :T]."""

    def hide(self, scores):
        return scores.masked_fill(self.mask[-scores.shape[-2] :, : scores.shape[-1]], -torch.inf)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_no_dropout_in_evaluation")
class MaskedInTrainingOnly(RightHeads):
    """Later tokens are hidden in training only; the mask belongs to the model, so it stays in evaluation."""

    def hide(self, scores):
        return super().hide(scores) if self.training else scores


@misconception("MultiHeadAttention", kind="mask", caught_by="test_large_scores_do_not_overflow")
class MaskAfterSoftmaxRenormalised(RightHeads):
    """Later keys take part in the softmax and are taken out after it; where they had all the weight, 0 / 0 is left:
    put -inf into the scores."""

    def hide(self, scores):
        return scores

    def weigh(self, scores):
        weights = super().weigh(scores).masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], 0.0)
        return weights / weights.sum(dim=-1, keepdim=True)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_large_scores_do_not_overflow")
class FinitePenaltyLeaks(RightHeads):
    """A finite number such as -1e4 is added to the scores of later keys, which large scores outweigh; use -inf."""

    def hide(self, scores):
        return scores + -1e4 * self.mask[: scores.shape[-2], : scores.shape[-1]].to(scores.dtype)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class ZeroTimesInfinity(RightHeads):
    """The mask is multiplied by -inf, and 0 times infinity is NaN; use masked_fill(mask, -torch.inf)."""

    def hide(self, scores):
        return scores + self.mask[: scores.shape[-2], : scores.shape[-1]].to(scores.dtype) * -torch.inf


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskOfHead0(RightHeads):
    """Later tokens are hidden in the first head only; the mask holds for every head."""

    def hide(self, scores):
        hidden = self.mask[: scores.shape[-2], : scores.shape[-1]]
        return torch.cat([scores[:, :1].masked_fill(hidden, -torch.inf), scores[:, 1:]], dim=1)

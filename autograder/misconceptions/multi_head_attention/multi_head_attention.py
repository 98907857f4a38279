"""What goes wrong in `MultiHeadAttention`."""

import torch
import torch.nn.functional as F
from torch import nn

from ...catalogue import misconception


class RightHeads(nn.Module):
    """Every step as it should be; the entries that build on it get one of them wrong."""

    projections = ("W_query", "W_key", "W_value")

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        for name in self.projections:
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], -torch.inf)

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=-1)

    def attend(self, queries, keys, values):
        return self.dropout(self.weigh(self.hide(queries @ keys.mT))) @ values

    def merge(self, context):
        return context.transpose(1, 2).flatten(2)

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.out_proj(self.merge(self.attend(queries, keys, values)))


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class SplitWithoutSwapping(RightHeads):
    """The heads are counted off in memory order, which mixes tokens; cut into (b, T, h, hd), then transpose(1, 2)."""

    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], self.head_dim)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class HeadsAndTokensNotSwapped(RightHeads):
    """Heads and tokens are never swapped, so heads meet heads within a token; transpose(1, 2) before the scores."""

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.head_dim))

    def hide(self, scores):
        return scores

    def merge(self, context):
        return context.flatten(2)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EveryHthNumber(RightHeads):
    """A head gets every h-th number of a token; it gets a piece of neighbours: (b, T, h, hd), not (b, T, hd, h)."""

    def split(self, x):
        return x.unflatten(-1, (self.head_dim, self.num_heads)).permute(0, 3, 1, 2)

    def merge(self, context):
        return context.permute(0, 2, 3, 1).flatten(2)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class HeadsAndWidthExchanged(RightHeads):
    """Number and width of the heads are exchanged: there are num_heads of them, each d_out / num_heads wide."""

    def split(self, x):
        return x.unflatten(-1, (self.head_dim, self.num_heads)).transpose(1, 2)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OneWideHead(RightHeads):
    """The vectors are never split, so there is one head of width d_out; split them into num_heads."""

    def split(self, x):
        return x.unsqueeze(1)

    def weigh(self, scores):
        return torch.softmax(scores / (self.num_heads * self.head_dim) ** 0.5, dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class MergedWithoutSwapping(RightHeads):
    """The heads are merged without being swapped back, which mixes tokens; transpose(1, 2), once, then reshape."""

    def merge(self, context):
        return context.reshape(context.shape[0], context.shape[2], -1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class MergedOutOfOrder(RightHeads):
    """`view` refuses a tensor whose dimensions were swapped; call `.contiguous()` after transpose, or use `reshape`."""

    def merge(self, context):
        return context.transpose(1, 2).view(context.shape[0], context.shape[2], -1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class MergedInterleaved(RightHeads):
    """The merged heads' numbers take turns; each head's numbers stay together, head 0's first."""

    def merge(self, context):
        return context.permute(0, 2, 3, 1).flatten(2)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class MergedInReverse(RightHeads):
    """The merged heads stand in reverse order; head 0's numbers come first."""

    def merge(self, context):
        return context.flip(1).transpose(1, 2).flatten(2)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class Head0Repeated(RightHeads):
    """Head 0's result is repeated in the places of the other heads; each head attends on its own."""

    def merge(self, context):
        return torch.cat([context[:, 0]] * self.num_heads, dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class KeysOfHead0(RightHeads):
    """Every head is scored against head 0's keys; each head has its own."""

    def attend(self, queries, keys, values):
        return super().attend(queries, keys[:, :1], values)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class HeadsMeetEachOther(RightHeads):
    """Scores are averaged over the heads, so that all attend alike; each head has its own scores: (b, h, T, T)."""

    def attend(self, queries, keys, values):
        scores = (queries @ keys.mT).mean(dim=1, keepdim=True)
        return self.dropout(self.weigh(self.hide(scores))) @ values


@misconception("MultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class FirstSequenceOnly(RightHeads):
    """Every sequence of the batch attends to the first one's keys; keep the batch dimension."""

    def attend(self, queries, keys, values):
        return super().attend(queries, keys[:1], values)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class HeadsNotScaled(RightHeads):
    """The scores are not scaled: divide them by the square root of head_dim before the softmax."""

    def weigh(self, scores):
        return torch.softmax(scores, dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class DividedByHeadDim(RightHeads):
    """The scores are divided by head_dim (or by its square root twice); divide by its square root."""

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim, dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class ScaledByTheRootOfDOut(RightHeads):
    """The scores are scaled by the root of d_out, all heads together; scale by that of head_dim, one head's width."""

    def weigh(self, scores):
        return torch.softmax(scores / (self.num_heads * self.head_dim) ** 0.5, dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class DividedByDOut(RightHeads):
    """The scores are divided by d_out; divide by the square root of head_dim, the width of one head."""

    def weigh(self, scores):
        return torch.softmax(scores / (self.num_heads * self.head_dim), dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class ScaledByTheRootOfTokens(RightHeads):
    """The scores are scaled by the root of the number of tokens; scale by that of head_dim, the width of one head."""

    def weigh(self, scores):
        return torch.softmax(scores / scores.shape[-1] ** 0.5, dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class ScaledByTheRootOfHeads(RightHeads):
    """The scores are scaled by the root of the number of heads; scale by that of head_dim, the width of one head."""

    def weigh(self, scores):
        return torch.softmax(scores / self.num_heads**0.5, dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class SoftmaxOverTheQueries(RightHeads):
    """The softmax runs over the queries (dim=-2), so the columns sum to 1; over the keys, dim=-1, the rows do."""

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=-2)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class SoftmaxOverTheHeads(RightHeads):
    """The softmax runs over the heads (dim=1); each head's weights sum to 1 over its keys: dim=-1."""

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class NoSoftmax(RightHeads):
    """The softmax is missing: the scaled scores are used as weights, with 0 for later keys."""

    def weigh(self, scores):
        return (scores / self.head_dim**0.5).masked_fill(scores == -torch.inf, 0.0)


@misconception("MultiHeadAttention", kind="edge", caught_by="test_large_scores_do_not_overflow")
class ExponentialsOverflow(RightHeads):
    """Large scores give NaN, as exp of them is infinite or 0: subtract each row's own maximum first, or use softmax."""

    def weigh(self, scores):
        exponentials = torch.exp(scores / self.head_dim**0.5)
        return exponentials / exponentials.sum(dim=-1, keepdim=True)


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


@misconception("MultiHeadAttention", kind="device", caught_by="test_follows_device")
class MaskIsNoBuffer(RightHeads):
    """A tensor that the module makes, such as its mask, stays on the CPU when it moves; register it as a buffer."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.mask
        self.mask = torch.ones(context_length, context_length).triu(diagonal=1).bool()


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class MaskIsAParameter(RightHeads):
    """The mask is a parameter, which counts as something to learn; register it as a buffer."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.mask
        self.mask = nn.Parameter(torch.ones(context_length, context_length).triu(1).bool(), requires_grad=False)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_no_dropout_in_evaluation")
class MaskedInTrainingOnly(RightHeads):
    """Later tokens are hidden in training only; the mask belongs to the model, so it stays in evaluation."""

    def hide(self, scores):
        return super().hide(scores) if self.training else scores


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
    """Scores are dropped, and a score of 0 still gets weight; drop the weights, after the softmax."""

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


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seeds_matter")
class SeedSetWhenBuilt(RightHeads):
    """A seed is set inside __init__, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        torch.manual_seed(123)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OutProjForgotten(RightHeads):
    """out_proj is made and never used; apply it to the merged heads, at the end."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.merge(self.attend(queries, keys, values))


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OutProjNotMade(RightHeads):
    """There is no out_proj; make the layer nn.Linear(d_out, d_out) and apply it to the merged heads."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Identity()


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OutProjWithoutBias(RightHeads):
    """out_proj has no bias; it has one whatever qkv_bias says: nn.Linear(d_out, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj.bias = None


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OutProjBiasLikeTheOthers(RightHeads):
    """out_proj takes its bias from qkv_bias, which is for the three projections; out_proj always has one."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        if not qkv_bias:
            self.out_proj.bias = None


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OutProjBiasNotUsed(RightHeads):
    """Only out_proj's weight is used, without its bias; call the layer: self.out_proj(merged)."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.merge(self.attend(queries, keys, values)) @ self.out_proj.weight.T


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OutProjForEachHead(RightHeads):
    """out_proj is as narrow as one head; it goes from d_out to d_out, so that it can mix what all heads found."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Linear(self.head_dim, self.head_dim)

    def merge(self, context):
        return context

    def forward(self, x):
        return super().forward(x).transpose(1, 2).flatten(2)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_bias")
class QkvBiasIgnored(RightHeads):
    """qkv_bias is ignored: the projections never have a bias; pass bias=qkv_bias to each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class QkvBiasAlwaysOn(RightHeads):
    """The projections have a bias that was not asked for: qkv_bias is False by default, and goes to each as bias."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, True)


@misconception("MultiHeadAttention", kind="value", caught_by="test_bias")
class QkvBiasNotUsed(RightHeads):
    """Only the projections' weights are used, without their bias; call the layers: self.W_query(x)."""

    def project(self, x):
        return x @ self.W_query.weight.T, x @ self.W_key.weight.T, x @ self.W_value.weight.T


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class QueriesAndKeysSwapped(RightHeads):
    """Queries and keys are swapped: row i of a head's scores should hold query i's, so the queries come first."""

    def project(self, x):
        return self.W_key(x), self.W_query(x), self.W_value(x)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class KeysUsedAsValues(RightHeads):
    """The weights are applied to the keys; they belong to the values, W_value(x)."""

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_key(x)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class QueriesUsedAsKeys(RightHeads):
    """The queries are scored against themselves; score them against the keys, W_key(x)."""

    def project(self, x):
        return self.W_query(x), self.W_query(x), self.W_value(x)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class WeightsTransposed(RightHeads):
    """The weights are transposed before they meet the values; each row already belongs to one query."""

    def attend(self, queries, keys, values):
        return self.dropout(self.weigh(self.hide(queries @ keys.mT))).mT @ values


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OutProjMadeFirst(RightHeads):
    """out_proj is created before the projections; under a fixed seed the order is W_query, W_key, W_value, out_proj."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        out_proj = nn.Linear(d_out, d_out)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = out_proj


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class KeysMadeFirst(RightHeads):
    """W_key is created before W_query; under a fixed seed the order is W_query, W_key, W_value, out_proj."""

    projections = ("W_key", "W_query", "W_value")


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class ValuesMadeFirst(RightHeads):
    """W_value is created before the others; under a fixed seed the order is W_query, W_key, W_value, out_proj."""

    projections = ("W_value", "W_query", "W_key")


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class LayersStartedAnew(RightHeads):
    """The layers' weights are drawn a second time (nn.init); leave them as nn.Linear draws them."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        for name in (*self.projections, "out_proj"):
            nn.init.xavier_uniform_(getattr(self, name).weight)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EveryHeadAsWideAsDOut(RightHeads):
    """Every head is as wide as d_out; the heads share it, so that each is d_out / num_heads wide."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out * num_heads, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Linear(d_out * num_heads, d_out)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class LayersInAList(RightHeads):
    """The projections stand in a plain list, where no optimizer finds them; assign each to self."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.layers = [self.W_query, self.W_key, self.W_value]
        del self.W_query, self.W_key, self.W_value

    def project(self, x):
        return [layer(x) for layer in self.layers]


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class LayersForEachHead(nn.Module):
    """Each head has layers of its own; here all heads share W_query, W_key and W_value, and get a piece of each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.W_query, self.W_key, self.W_value = (
            nn.ModuleList(nn.Linear(d_in, d_out // num_heads, bias=qkv_bias) for _ in range(num_heads))
            for _ in range(3)
        )
        self.out_proj = nn.Linear(d_out, d_out)
        self.p = dropout

    def forward(self, x):
        p, heads = self.p if self.training else 0.0, zip(self.W_query, self.W_key, self.W_value, strict=True)
        found = [F.scaled_dot_product_attention(q(x), k(x), v(x), dropout_p=p, is_causal=True) for q, k, v in heads]
        return self.out_proj(torch.cat(found, dim=-1))


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class MatricesForLayers(RightHeads):
    """The projections are nn.Parameter matrices; make them nn.Linear layers."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.W_query, self.W_key, self.W_value
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def project(self, x):
        return x @ self.W_query, x @ self.W_key, x @ self.W_value


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class WeightsFrozen(RightHeads):
    """No gradient reaches the projections: they are frozen (requires_grad=False) or detached (`.detach()`, `.data`)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        for name in self.projections:
            getattr(self, name).requires_grad_(False)


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightHeads):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def weigh(self, scores):
        return super().weigh(scores).detach()


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ValuesDetached(RightHeads):
    """The values are detached (`.detach()`, `.data`), so no gradient reaches W_value."""

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x).detach()


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ContextDetached(RightHeads):
    """The context vectors are detached, so only out_proj can learn; leave out `.detach()`, `.data` and no_grad."""

    def merge(self, context):
        return super().merge(context).detach()


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class InputDetached(RightHeads):
    """The input is detached, so that no layer before this module could learn; use x as it is."""

    def forward(self, x):
        return super().forward(x.detach())


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ForwardWithoutGraph(RightHeads):
    """forward runs without a graph (`torch.no_grad()`) or detaches its result, so nothing can learn."""

    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


@misconception("MultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class NothingRefused(RightHeads):
    """A d_out that num_heads does not divide is not refused when the module is built; raise ValueError in __init__."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, 1, qkv_bias)
        self.num_heads, self.head_dim = num_heads, d_out // num_heads


@misconception("MultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class RefusedByATypeError(RightHeads):
    """An indivisible d_out raises TypeError; its type is right, its value is not: raise ValueError (or use assert)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        if d_out % num_heads != 0:
            raise TypeError("d_out must be divisible by num_heads")
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class DInMustBeDivisible(RightHeads):
    """d_in is checked for divisibility; it is d_out that is split into heads, and d_in may be any width."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        assert d_in % num_heads == 0, "d_in must be divisible by num_heads"
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class ScoresInFloat32(RightHeads):
    """The weights are computed in float32 whatever the input is, so float64 loses digits; leave the dtype alone."""

    def weigh(self, scores):
        return super().weigh(scores.float()).to(scores.dtype)


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_context_vectors")
class HalfPrecisionInside(RightHeads):
    """The weights are computed in half precision, which has three digits; leave the dtype alone."""

    def weigh(self, scores):
        return super().weigh(scores.half()).to(scores.dtype)


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_dtype_is_kept")
class ResultInFloat64(RightHeads):
    """The result is float64 whatever the input is; keep the input's dtype."""

    def forward(self, x):
        return super().forward(x).double()


@misconception("MultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class DimensionsSqueezed(RightHeads):
    """`squeeze()` drops every dimension of size 1, also a batch or a token of one; leave it out."""

    def forward(self, x):
        return super().forward(x).squeeze()


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class HeadsReturnedApart(RightHeads):
    """The heads are returned apart, (b, h, T, hd); merge them, (b, T, d_out), and apply out_proj."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.attend(queries, keys, values)


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class WeightsReturned(RightHeads):
    """The attention weights are returned; multiply them with the values, merge the heads, apply out_proj."""

    def forward(self, x):
        queries, keys, _ = (self.split(projected) for projected in self.project(x))
        return self.weigh(self.hide(queries @ keys.mT))


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class ResultInATuple(RightHeads):
    """The result is a tuple, of context vectors and weights; return the context vectors alone."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        weights = self.dropout(self.weigh(self.hide(queries @ keys.mT)))
        return self.out_proj(self.merge(weights @ values)), weights


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class InputAdded(RightHeads):
    """The input is added to the result (a residual connection); that belongs to the block around this module."""

    def forward(self, x):
        merged = super().forward(x)
        return merged + x[..., : merged.shape[-1]]


@misconception("MultiHeadAttention", kind="side effect", caught_by="test_inputs_are_unchanged")
class InputOverwritten(RightHeads):
    """The input's memory is written into (`x[...] =`, `+=`, a method ending in `_`); make new tensors instead."""

    def forward(self, x):
        result = super().forward(x)
        x.data[..., : result.shape[-1]] = result.detach()
        return result


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_context_vectors")
class LayersMadeInForward(RightHeads):
    """The projections are made anew in forward, with new random weights each time; make them once, in __init__."""

    def project(self, x):
        return [
            nn.Linear(x.shape[-1], layer.out_features).to(x)(x) for layer in (self.W_query, self.W_key, self.W_value)
        ]


@misconception("MultiHeadAttention", kind="hard-coded output", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightHeads):
    """The worked example's numbers are returned whatever the input is; compute them."""

    def forward(self, x):
        rows = [
            [0.3190, 0.4858],
            [0.2943, 0.3897],
            [0.2856, 0.3593],
            [0.2693, 0.3873],
            [0.2639, 0.3928],
            [0.2575, 0.4028],
        ]
        return torch.tensor([rows, rows])


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class SplitAndMergedWithoutSwapping(RightHeads):
    """The heads are counted off in memory order and put back the same way, which mixes tokens; transpose(1, 2) after
    cutting, and before merging."""

    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], self.head_dim)

    def merge(self, context):
        return context.reshape(context.shape[0], context.shape[2], -1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OneWideHeadScaledByHeadDim(RightHeads):
    """The vectors are never split, though the scores are scaled as for heads; split queries, keys and values into
    num_heads."""

    def split(self, x):
        return x.unsqueeze(1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class MultipliedByTheRoot(RightHeads):
    """The scores are multiplied by the square root of head_dim; divide by it."""

    def weigh(self, scores):
        return torch.softmax(scores * self.head_dim**0.5, dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class ScaledByTheRootOfDIn(RightHeads):
    """The scores are scaled by the root of d_in, the input's width; scale by that of head_dim, the width of one
    head."""

    def weigh(self, scores):
        return torch.softmax(scores / self.W_query.in_features**0.5, dim=-1)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class WeightsScaled(RightHeads):
    """The weights are scaled after the softmax, so rows no longer sum to 1; divide the scores before it."""

    def weigh(self, scores):
        return torch.softmax(scores, dim=-1) / self.head_dim**0.5


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class SoftmaxOverTheBatch(RightHeads):
    """The softmax runs over the batch (dim=0), and mixes the sequences; over the keys, dim=-1, each row sums to 1."""

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=0)


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


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class QueriesUsedAsValues(RightHeads):
    """The weights are applied to the queries; they belong to the values, W_value(x)."""

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_query(x)


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class KeysAndValuesExchanged(RightHeads):
    """W_key makes the values and W_value the keys; it is the other way round."""

    def project(self, x):
        return self.W_query(x), self.W_value(x), self.W_key(x)


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class KeysDetached(RightHeads):
    """The keys are detached (`.detach()`, `.data`), so no gradient reaches W_key."""

    def project(self, x):
        return self.W_query(x), self.W_key(x).detach(), self.W_value(x)


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class FailsInFloat64(RightHeads):
    """Something is float32 whatever the input is (`.float()`, zeros without dtype), which float64 numbers cannot meet;
    keep x's dtype."""

    def forward(self, x):
        return super().forward(x.float())


@misconception("MultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class ResultInFloat32(RightHeads):
    """The result is float32 whatever the input is, so float64 loses digits; keep the input's dtype."""

    def forward(self, x):
        return super().forward(x).float()


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class NothingReturned(RightHeads):
    """forward returns None; it should end with `return` and the result of out_proj."""

    def forward(self, x):
        super().forward(x)


@misconception("MultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class MaskOfHead0(RightHeads):
    """Later tokens are hidden in the first head only; the mask holds for every head."""

    def hide(self, scores):
        hidden = self.mask[: scores.shape[-2], : scores.shape[-1]]
        return torch.cat([scores[:, :1].masked_fill(hidden, -torch.inf), scores[:, 1:]], dim=1)


@misconception("MultiHeadAttention", kind="side effect", caught_by="test_shorter_sequences")
class FirstCallRemembered(RightHeads):
    """What one call computed is used again by a later one; a call depends on its own input alone."""

    def attend(self, queries, keys, values):
        kept = self.__dict__.setdefault("kept", {})
        return super().attend(queries, keys, kept.setdefault(values.shape, values))


@misconception("MultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheMaskedScores(RightHeads):
    """Scores are dropped, after masking: 0 times -inf is NaN, and a score of 0 gets weight; drop the weights, after
    the softmax."""

    def attend(self, queries, keys, values):
        return self.weigh(self.dropout(self.hide(queries @ keys.mT))) @ values


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class WeightsAveraged(RightHeads):
    """The weights are averaged over the heads, so that all attend alike; each head keeps its own: (b, h, T, T)."""

    def attend(self, queries, keys, values):
        return self.dropout(self.weigh(self.hide(queries @ keys.mT)).mean(dim=1, keepdim=True)) @ values


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class SplitInterleaved(RightHeads):
    """The heads take the numbers in turn, (b, T, hd, h), and are merged in pieces; cut into (b, T, h, hd), then
    swap."""

    def split(self, x):
        return x.unflatten(-1, (self.head_dim, self.num_heads)).permute(0, 3, 1, 2)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class WrapperOfSingleHeads(RightHeads):
    """`heads` is a list of modules with layers of their own; here all heads share W_query, W_key, W_value, and get a
    piece of each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        out_proj = self.out_proj
        del self.W_query, self.W_key, self.W_value, self.out_proj
        self.heads = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(d_in, self.head_dim, bias=qkv_bias) for name in self.projections})
            for _ in range(num_heads)
        )
        self.out_proj = out_proj

    def project(self, x):
        return [torch.cat([head[name](x) for head in self.heads], dim=-1) for name in self.projections]

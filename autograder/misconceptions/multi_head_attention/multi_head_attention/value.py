"""Mistakes of the kind "value"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


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


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OutProjForgotten(RightHeads):
    """out_proj is made and never used; apply it to the merged heads, at the end."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.merge(self.attend(queries, keys, values))


@misconception("MultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OutProjBiasNotUsed(RightHeads):
    """Only out_proj's weight is used, without its bias; call the layer: self.out_proj(merged)."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.merge(self.attend(queries, keys, values)) @ self.out_proj.weight.T


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

"""Mistakes of the kind "value"."""

from ....catalogue import misconception
from ..multi_head_attention.mask import (
    MaskHidesEarlierTokens,
    MaskHidesTheTokenItself,
    MaskLetsTheNextTokenThrough,
    MaskTurnedRound,
)
from ..multi_head_attention.value import (
    DividedByDOut,
    DividedByHeadDim,
    EveryHthNumber,
    Head0Repeated,
    HeadsAndTokensNotSwapped,
    HeadsAndWidthExchanged,
    HeadsNotScaled,
    MergedInterleaved,
    MergedOutOfOrder,
    MergedWithoutSwapping,
    MultipliedByTheRoot,
    OneWideHead,
    OneWideHeadScaledByHeadDim,
    OutProjForgotten,
    ScaledByTheRootOfDOut,
    ScaledByTheRootOfHeads,
    ScaledByTheRootOfTokens,
    SoftmaxOverTheBatch,
    SoftmaxOverTheHeads,
    SoftmaxOverTheQueries,
    SplitAndMergedWithoutSwapping,
    SplitWithoutSwapping,
    WeightsScaled,
    WeightsTransposed,
)
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedSplitWithoutSwapping(SplitWithoutSwapping, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedEveryHthNumber(EveryHthNumber, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedHeadsAndWidthExchanged(HeadsAndWidthExchanged, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedOneWideHead(OneWideHead, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedMergedWithoutSwapping(MergedWithoutSwapping, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedMergedOutOfOrder(MergedOutOfOrder, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedMergedInterleaved(MergedInterleaved, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedHead0Repeated(Head0Repeated, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedHeadsNotScaled(HeadsNotScaled, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedDividedByHeadDim(DividedByHeadDim, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedScaledByTheRootOfDOut(ScaledByTheRootOfDOut, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedScaledByTheRootOfTokens(ScaledByTheRootOfTokens, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedSoftmaxOverTheQueries(SoftmaxOverTheQueries, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedSoftmaxOverTheHeads(SoftmaxOverTheHeads, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedMaskHidesTheTokenItself(MaskHidesTheTokenItself, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedMaskLetsTheNextTokenThrough(MaskLetsTheNextTokenThrough, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedMaskHidesEarlierTokens(MaskHidesEarlierTokens, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedMaskTurnedRound(MaskTurnedRound, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedOutProjForgotten(OutProjForgotten, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedWeightsTransposed(WeightsTransposed, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedSplitAndMergedWithoutSwapping(SplitAndMergedWithoutSwapping, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedOneWideHeadScaledByHeadDim(OneWideHeadScaledByHeadDim, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedMultipliedByTheRoot(MultipliedByTheRoot, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedWeightsScaled(WeightsScaled, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedSoftmaxOverTheBatch(SoftmaxOverTheBatch, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedScaledByTheRootOfHeads(ScaledByTheRootOfHeads, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedDividedByDOut(DividedByDOut, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedHeadsAndTokensNotSwapped(HeadsAndTokensNotSwapped, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedKeysAsValues(RightOptimized):
    """The keys are used as values; the value is the input itself, split into heads."""

    def project(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return queries, keys, keys


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedQueriesAsValues(RightOptimized):
    """The queries are used as values; the value is the input itself, split into heads."""

    def project(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return queries, keys, queries


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedInputAsKeys(RightOptimized):
    """The input is used as key and W_key makes the values; it is the other way round."""

    def project(self, x):
        return self.W_query(x), x, self.W_key(x)


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedValuesNotSplit(RightOptimized):
    """The heads are averaged, so that one set of weights falls on the whole input; each head weighs its own piece of
    it."""

    def forward(self, x):
        queries, keys = self.split(self.W_query(x)), self.split(self.W_key(x))
        return self.out_proj(self.attend(queries, keys, x.unsqueeze(1)).mean(dim=1))


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedValuesOutOfOrder(RightOptimized):
    """The values are cut in memory order, which mixes tokens; split the input like the queries."""

    def attend(self, queries, keys, values):
        values = values.transpose(1, 2).reshape(values.shape)
        return super().attend(queries, keys, values)


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedQueriesAndKeysSwapped(RightOptimized):
    """Queries and keys are swapped: row i of a head's scores should hold query i's, so the queries come first."""

    def project(self, x):
        return self.W_key(x), self.W_query(x), x

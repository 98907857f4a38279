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
from .right import RightEfficient


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientSplitWithoutSwapping(SplitWithoutSwapping, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientEveryHthNumber(EveryHthNumber, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientHeadsAndWidthExchanged(HeadsAndWidthExchanged, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientOneWideHead(OneWideHead, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientMergedWithoutSwapping(MergedWithoutSwapping, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientMergedOutOfOrder(MergedOutOfOrder, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientMergedInterleaved(MergedInterleaved, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientHead0Repeated(Head0Repeated, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientHeadsNotScaled(HeadsNotScaled, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientDividedByHeadDim(DividedByHeadDim, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientScaledByTheRootOfDOut(ScaledByTheRootOfDOut, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientScaledByTheRootOfTokens(ScaledByTheRootOfTokens, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientSoftmaxOverTheQueries(SoftmaxOverTheQueries, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientSoftmaxOverTheHeads(SoftmaxOverTheHeads, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientMaskHidesTheTokenItself(MaskHidesTheTokenItself, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientMaskLetsTheNextTokenThrough(MaskLetsTheNextTokenThrough, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientMaskHidesEarlierTokens(MaskHidesEarlierTokens, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientMaskTurnedRound(MaskTurnedRound, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientOutProjForgotten(OutProjForgotten, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientWeightsTransposed(WeightsTransposed, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientSplitAndMergedWithoutSwapping(SplitAndMergedWithoutSwapping, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientOneWideHeadScaledByHeadDim(OneWideHeadScaledByHeadDim, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientMultipliedByTheRoot(MultipliedByTheRoot, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientWeightsScaled(WeightsScaled, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientSoftmaxOverTheBatch(SoftmaxOverTheBatch, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientScaledByTheRootOfHeads(ScaledByTheRootOfHeads, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientDividedByDOut(DividedByDOut, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientHeadsAndTokensNotSwapped(HeadsAndTokensNotSwapped, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientQueriesForAll(RightEfficient):
    """The queries are used as keys and values; both are the input itself, split into heads."""

    def project(self, x):
        queries = self.W_query(x)
        return queries, queries, queries


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientQueriesAsKeys(RightEfficient):
    """The queries are used as keys; the key is the input itself, split into heads."""

    def project(self, x):
        return self.W_query(x), self.W_query(x), x


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientQueriesAsValues(RightEfficient):
    """The queries are used as values; the value is the input itself, split into heads."""

    def project(self, x):
        return self.W_query(x), x, self.W_query(x)


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientInputForAll(RightEfficient):
    """The input is used as query too, and W_query not at all; the queries are W_query(x)."""

    def project(self, x):
        return x, x, x


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientQueriesAndKeysSwapped(RightEfficient):
    """Queries and keys are swapped: W_query(x) makes the queries, which come first in the product."""

    def project(self, x):
        return x, self.W_query(x), x


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientInputOutOfOrder(RightEfficient):
    """Keys and values are cut in memory order, which mixes tokens; split the input like the queries."""

    def attend(self, queries, keys, values):
        pieces = values.transpose(1, 2).reshape(values.shape)
        return super().attend(queries, pieces, pieces)


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientValuesNotSplit(RightEfficient):
    """The heads are averaged, so that one set of weights falls on the whole input; each head weighs its own piece of
    it."""

    def forward(self, x):
        queries, keys = self.split(self.W_query(x)), self.split(x)
        return self.out_proj(self.attend(queries, keys, x.unsqueeze(1)).mean(dim=1))

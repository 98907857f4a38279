"""What goes wrong in `OptimizedMultiHeadAttention`."""

from torch import nn

from ...catalogue import misconception
from .multi_head_attention import (
    AttentionWeightsDetached,
    ContextDetached,
    ContextLengthForTokens,
    DimensionsSqueezed,
    DividedByDOut,
    DividedByHeadDim,
    DropoutAlwaysOn,
    DropoutIgnored,
    DropoutKeepsP,
    DropoutNotRescaled,
    DropoutOfAHalf,
    DropoutOnNumbers,
    DropoutOnTheMaskedScores,
    DropoutOnTheResultToo,
    DropoutOnTheScores,
    DropoutOnTheValues,
    DropoutRenormalised,
    DropoutSharedByHeads,
    DropoutSharedByTheBatch,
    DroppedTwice,
    EveryHthNumber,
    ExponentialsOverflow,
    FailsInFloat64,
    FiniteFillLeaks,
    FinitePenaltyLeaks,
    FirstCallRemembered,
    FirstSequenceOnly,
    ForwardWithoutGraph,
    HalfPrecisionInside,
    Head0Repeated,
    HeadsAndTokensNotSwapped,
    HeadsAndWidthExchanged,
    HeadsNotScaled,
    HeadsReturnedApart,
    InputAdded,
    InputDetached,
    LastRowsOfTheMask,
    LayersStartedAnew,
    MaskAfterSoftmax,
    MaskAfterSoftmaxRenormalised,
    MaskedInTrainingOnly,
    MaskedWithZeros,
    MaskHidesEarlierTokens,
    MaskHidesTheTokenItself,
    MaskIsAParameter,
    MaskIsNoBuffer,
    MaskLetsTheNextTokenThrough,
    MaskMissing,
    MaskTurnedRound,
    MergedInterleaved,
    MergedOutOfOrder,
    MergedWithoutSwapping,
    MultipliedByTheRoot,
    NothingRefused,
    NothingReturned,
    OneWideHead,
    OneWideHeadScaledByHeadDim,
    OutProjBiasLikeTheOthers,
    OutProjForgotten,
    OutProjNotMade,
    OutProjWithoutBias,
    QkvBiasAlwaysOn,
    QkvBiasIgnored,
    RefusedByATypeError,
    ResultInATuple,
    ResultInFloat32,
    ResultInFloat64,
    RightHeads,
    ScaledByTheRootOfDOut,
    ScaledByTheRootOfHeads,
    ScaledByTheRootOfTokens,
    ScoresInFloat32,
    SeedSetInForward,
    SeedSetWhenBuilt,
    SoftmaxOverTheBatch,
    SoftmaxOverTheHeads,
    SoftmaxOverTheQueries,
    SplitAndMergedWithoutSwapping,
    SplitWithoutSwapping,
    WeightsReturned,
    WeightsScaled,
    WeightsTransposed,
    ZeroTimesInfinity,
)


class RightOptimized(RightHeads):
    """Every step as it should be. A mistake that MultiHeadAttention knows too keeps its sentence."""

    projections = ("W_query", "W_key")

    def project(self, x):
        return self.W_query(x), self.W_key(x), x


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


@misconception("OptimizedMultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class OptimizedFirstSequenceOnly(FirstSequenceOnly, RightOptimized):
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


@misconception("OptimizedMultiHeadAttention", kind="edge", caught_by="test_large_scores_do_not_overflow")
class OptimizedExponentialsOverflow(ExponentialsOverflow, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class OptimizedMaskMissing(MaskMissing, RightOptimized):
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


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class OptimizedMaskAfterSoftmax(MaskAfterSoftmax, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class OptimizedMaskedWithZeros(MaskedWithZeros, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_large_scores_do_not_overflow")
class OptimizedFiniteFillLeaks(FiniteFillLeaks, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="edge", caught_by="test_shorter_sequences")
class OptimizedContextLengthForTokens(ContextLengthForTokens, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="device", caught_by="test_follows_device")
class OptimizedMaskIsNoBuffer(MaskIsNoBuffer, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedMaskIsAParameter(MaskIsAParameter, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_no_dropout_in_evaluation")
class OptimizedMaskedInTrainingOnly(MaskedInTrainingOnly, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutIgnored(DropoutIgnored, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_no_dropout_in_evaluation")
class OptimizedDropoutAlwaysOn(DropoutAlwaysOn, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutNotRescaled(DropoutNotRescaled, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDroppedTwice(DroppedTwice, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutKeepsP(DropoutKeepsP, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnTheScores(DropoutOnTheScores, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnNumbers(DropoutOnNumbers, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_each_call_drops_anew")
class OptimizedSeedSetInForward(SeedSetInForward, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seeds_matter")
class OptimizedSeedSetWhenBuilt(SeedSetWhenBuilt, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedOutProjForgotten(OutProjForgotten, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedOutProjNotMade(OutProjNotMade, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedOutProjWithoutBias(OutProjWithoutBias, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_bias")
class OptimizedQkvBiasIgnored(QkvBiasIgnored, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedQkvBiasAlwaysOn(QkvBiasAlwaysOn, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class OptimizedWeightsTransposed(WeightsTransposed, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedAttentionWeightsDetached(AttentionWeightsDetached, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedContextDetached(ContextDetached, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedForwardWithoutGraph(ForwardWithoutGraph, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class OptimizedNothingRefused(NothingRefused, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class OptimizedScoresInFloat32(ScoresInFloat32, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_dtype_is_kept")
class OptimizedResultInFloat64(ResultInFloat64, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class OptimizedDimensionsSqueezed(DimensionsSqueezed, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class OptimizedWeightsReturned(WeightsReturned, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class OptimizedInputAdded(InputAdded, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnTheMaskedScores(DropoutOnTheMaskedScores, RightOptimized):
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


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_large_scores_do_not_overflow")
class OptimizedMaskAfterSoftmaxRenormalised(MaskAfterSoftmaxRenormalised, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_large_scores_do_not_overflow")
class OptimizedFinitePenaltyLeaks(FinitePenaltyLeaks, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class OptimizedZeroTimesInfinity(ZeroTimesInfinity, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnTheValues(DropoutOnTheValues, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOnTheResultToo(DropoutOnTheResultToo, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutSharedByTheBatch(DropoutSharedByTheBatch, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutOfAHalf(DropoutOfAHalf, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutRenormalised(DropoutRenormalised, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class OptimizedDropoutSharedByHeads(DropoutSharedByHeads, RightOptimized):
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


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class OptimizedFailsInFloat64(FailsInFloat64, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class OptimizedResultInFloat32(ResultInFloat32, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class OptimizedNothingReturned(NothingReturned, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class OptimizedResultInATuple(ResultInATuple, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class OptimizedHeadsReturnedApart(HeadsReturnedApart, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_context_vectors")
class OptimizedHalfPrecisionInside(HalfPrecisionInside, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedOutProjBiasLikeTheOthers(OutProjBiasLikeTheOthers, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OptimizedLayersStartedAnew(LayersStartedAnew, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class OptimizedRefusedByATypeError(RefusedByATypeError, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_shorter_sequences")
class OptimizedLastRowsOfTheMask(LastRowsOfTheMask, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="side effect", caught_by="test_shorter_sequences")
class OptimizedFirstCallRemembered(FirstCallRemembered, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedKeysDetached(RightOptimized):
    """The keys are detached (`.detach()`, `.data`), so no gradient reaches W_key."""

    def project(self, x):
        return self.W_query(x), self.W_key(x).detach(), x


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedInputDetached(InputDetached, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedProjectsValues(RightHeads):
    """W_value is still there and makes the values; leave it out: the input itself, split into heads, is the value."""

    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedKeepsWValue(RightOptimized):
    """W_value is still made, though nothing uses it; leave the layer out."""

    projections = ("W_query", "W_key", "W_value")


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


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedValuesDetached(RightOptimized):
    """The values are detached (`.detach()`, `.data`), so no gradient reaches the input through them."""

    def project(self, x):
        return self.W_query(x), self.W_key(x), x.detach()


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OptimizedOutProjMadeFirst(RightOptimized):
    """out_proj is created before the projections; under a fixed seed the order is W_query, W_key, out_proj."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        out_proj = nn.Linear(d_out, d_out)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = out_proj


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OptimizedKeysMadeFirst(RightOptimized):
    """W_key is created before W_query; under a fixed seed the order is W_query, W_key, out_proj."""

    projections = ("W_key", "W_query")


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OptimizedDrawsAsIfWithWValue(RightOptimized):
    """out_proj starts from other numbers, as if a third layer came before it; create W_query, W_key, out_proj only."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)


@misconception("OptimizedMultiHeadAttention", kind="side effect", caught_by="test_inputs_are_unchanged")
class OptimizedInputOverwritten(RightOptimized):
    """The context vectors are written into the input's memory (`x[...] =`, `copy_`); make a new tensor for them."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        merged = self.merge(self.attend(queries, keys, values))
        x.data[...] = merged.detach()
        return self.out_proj(merged)

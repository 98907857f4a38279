"""What goes wrong in `EfficientMultiHeadAttention`."""

import torch
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
from .optimized_multi_head_attention import RightOptimized


class RightEfficient(RightHeads):
    """Every step as it should be. A mistake that MultiHeadAttention knows too keeps its sentence."""

    projections = ("W_query",)

    def project(self, x):
        return self.W_query(x), x, x


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


@misconception("EfficientMultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class EfficientFirstSequenceOnly(FirstSequenceOnly, RightEfficient):
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


@misconception("EfficientMultiHeadAttention", kind="edge", caught_by="test_large_scores_do_not_overflow")
class EfficientExponentialsOverflow(ExponentialsOverflow, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class EfficientMaskMissing(MaskMissing, RightEfficient):
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


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class EfficientMaskAfterSoftmax(MaskAfterSoftmax, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class EfficientMaskedWithZeros(MaskedWithZeros, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_large_scores_do_not_overflow")
class EfficientFiniteFillLeaks(FiniteFillLeaks, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="edge", caught_by="test_shorter_sequences")
class EfficientContextLengthForTokens(ContextLengthForTokens, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="device", caught_by="test_follows_device")
class EfficientMaskIsNoBuffer(MaskIsNoBuffer, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientMaskIsAParameter(MaskIsAParameter, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_no_dropout_in_evaluation")
class EfficientMaskedInTrainingOnly(MaskedInTrainingOnly, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutIgnored(DropoutIgnored, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_no_dropout_in_evaluation")
class EfficientDropoutAlwaysOn(DropoutAlwaysOn, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutNotRescaled(DropoutNotRescaled, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDroppedTwice(DroppedTwice, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutKeepsP(DropoutKeepsP, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOnTheScores(DropoutOnTheScores, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOnNumbers(DropoutOnNumbers, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_each_call_drops_anew")
class EfficientSeedSetInForward(SeedSetInForward, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_seeds_matter")
class EfficientSeedSetWhenBuilt(SeedSetWhenBuilt, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientOutProjForgotten(OutProjForgotten, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientOutProjNotMade(OutProjNotMade, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientOutProjWithoutBias(OutProjWithoutBias, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_bias")
class EfficientQkvBiasIgnored(QkvBiasIgnored, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientQkvBiasAlwaysOn(QkvBiasAlwaysOn, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="value", caught_by="test_context_vectors")
class EfficientWeightsTransposed(WeightsTransposed, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class EfficientAttentionWeightsDetached(AttentionWeightsDetached, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class EfficientContextDetached(ContextDetached, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class EfficientForwardWithoutGraph(ForwardWithoutGraph, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class EfficientNothingRefused(NothingRefused, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class EfficientScoresInFloat32(ScoresInFloat32, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_dtype_is_kept")
class EfficientResultInFloat64(ResultInFloat64, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class EfficientDimensionsSqueezed(DimensionsSqueezed, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class EfficientWeightsReturned(WeightsReturned, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class EfficientInputAdded(InputAdded, RightEfficient):
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


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_large_scores_do_not_overflow")
class EfficientMaskAfterSoftmaxRenormalised(MaskAfterSoftmaxRenormalised, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_large_scores_do_not_overflow")
class EfficientFinitePenaltyLeaks(FinitePenaltyLeaks, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class EfficientZeroTimesInfinity(ZeroTimesInfinity, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOnTheValues(DropoutOnTheValues, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOnTheResultToo(DropoutOnTheResultToo, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutSharedByTheBatch(DropoutSharedByTheBatch, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutOfAHalf(DropoutOfAHalf, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutRenormalised(DropoutRenormalised, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dropout", caught_by="test_dropout_in_training")
class EfficientDropoutSharedByHeads(DropoutSharedByHeads, RightEfficient):
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


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class EfficientFailsInFloat64(FailsInFloat64, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class EfficientResultInFloat32(ResultInFloat32, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class EfficientNothingReturned(NothingReturned, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class EfficientResultInATuple(ResultInATuple, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class EfficientHeadsReturnedApart(HeadsReturnedApart, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_context_vectors")
class EfficientHalfPrecisionInside(HalfPrecisionInside, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientOutProjBiasLikeTheOthers(OutProjBiasLikeTheOthers, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class EfficientLayersStartedAnew(LayersStartedAnew, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class EfficientRefusedByATypeError(RefusedByATypeError, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_shorter_sequences")
class EfficientLastRowsOfTheMask(LastRowsOfTheMask, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="side effect", caught_by="test_shorter_sequences")
class EfficientFirstCallRemembered(FirstCallRemembered, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientProjectsAll(RightHeads):
    """W_key and W_value are still there and used; leave them out: the input, split into heads, is key and value."""

    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientProjectsKeys(RightOptimized):
    """W_key is still there and makes the keys; leave it out: the input, split into heads, is key and value."""

    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientKeepsWKey(RightEfficient):
    """W_key is still made, though nothing uses it; leave the layer out."""

    projections = ("W_query", "W_key")


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


@misconception("EfficientMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class EfficientInputDetached(RightEfficient):
    """Keys and values are detached (`.detach()`, `.data`), so no gradient reaches the input through them."""

    def project(self, x):
        return self.W_query(x), x.detach(), x.detach()


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class EfficientOutProjMadeFirst(RightEfficient):
    """out_proj is created before W_query; under a fixed seed W_query comes first."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        out_proj = nn.Linear(d_out, d_out)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = out_proj


@misconception("EfficientMultiHeadAttention", kind="side effect", caught_by="test_inputs_are_unchanged")
class EfficientKeysScaledInPlace(RightEfficient):
    """The input is scaled in place (`/=`, `div_`) to make the keys; it is the caller's, so scale the scores instead."""

    def project(self, x):
        queries, values = self.W_query(x), x.clone()
        x.data /= self.head_dim**0.5
        return queries, x, values

    def weigh(self, scores):
        return torch.softmax(scores, dim=-1)

"""Mistakes of the kind "mask"."""

from ....catalogue import misconception
from ..multi_head_attention.mask import (
    FiniteFillLeaks,
    FinitePenaltyLeaks,
    LastRowsOfTheMask,
    MaskAfterSoftmax,
    MaskAfterSoftmaxRenormalised,
    MaskedInTrainingOnly,
    MaskedWithZeros,
    MaskMissing,
    ZeroTimesInfinity,
)
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class OptimizedMaskMissing(MaskMissing, RightOptimized):
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


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_no_dropout_in_evaluation")
class OptimizedMaskedInTrainingOnly(MaskedInTrainingOnly, RightOptimized):
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


@misconception("OptimizedMultiHeadAttention", kind="mask", caught_by="test_shorter_sequences")
class OptimizedLastRowsOfTheMask(LastRowsOfTheMask, RightOptimized):
    pass

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
from .right import RightEfficient


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_context_vectors")
class EfficientMaskMissing(MaskMissing, RightEfficient):
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


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_no_dropout_in_evaluation")
class EfficientMaskedInTrainingOnly(MaskedInTrainingOnly, RightEfficient):
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


@misconception("EfficientMultiHeadAttention", kind="mask", caught_by="test_shorter_sequences")
class EfficientLastRowsOfTheMask(LastRowsOfTheMask, RightEfficient):
    pass

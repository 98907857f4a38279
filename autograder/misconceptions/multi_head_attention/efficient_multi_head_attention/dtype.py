"""Mistakes of the kind "dtype"."""

from ....catalogue import misconception
from ..multi_head_attention.dtype import (
    FailsInFloat64,
    HalfPrecisionInside,
    ResultInFloat32,
    ResultInFloat64,
    ScoresInFloat32,
)
from .right import RightEfficient


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class EfficientScoresInFloat32(ScoresInFloat32, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_dtype_is_kept")
class EfficientResultInFloat64(ResultInFloat64, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class EfficientFailsInFloat64(FailsInFloat64, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class EfficientResultInFloat32(ResultInFloat32, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="dtype", caught_by="test_context_vectors")
class EfficientHalfPrecisionInside(HalfPrecisionInside, RightEfficient):
    pass

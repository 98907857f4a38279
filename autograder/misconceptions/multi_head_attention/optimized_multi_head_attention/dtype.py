"""Mistakes of the kind "dtype"."""

from ....catalogue import misconception
from ..multi_head_attention.dtype import (
    FailsInFloat64,
    HalfPrecisionInside,
    ResultInFloat32,
    ResultInFloat64,
    ScoresInFloat32,
)
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class OptimizedScoresInFloat32(ScoresInFloat32, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_dtype_is_kept")
class OptimizedResultInFloat64(ResultInFloat64, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class OptimizedFailsInFloat64(FailsInFloat64, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_float64_stays_exact")
class OptimizedResultInFloat32(ResultInFloat32, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="dtype", caught_by="test_context_vectors")
class OptimizedHalfPrecisionInside(HalfPrecisionInside, RightOptimized):
    pass

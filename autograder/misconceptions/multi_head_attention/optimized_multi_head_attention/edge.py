"""Mistakes of the kind "edge"."""

from ....catalogue import misconception
from ..multi_head_attention.edge import DimensionsSqueezed, ExponentialsOverflow, FirstSequenceOnly
from ..multi_head_attention.mask import ContextLengthForTokens
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class OptimizedFirstSequenceOnly(FirstSequenceOnly, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="edge", caught_by="test_large_scores_do_not_overflow")
class OptimizedExponentialsOverflow(ExponentialsOverflow, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="edge", caught_by="test_shorter_sequences")
class OptimizedContextLengthForTokens(ContextLengthForTokens, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class OptimizedDimensionsSqueezed(DimensionsSqueezed, RightOptimized):
    pass

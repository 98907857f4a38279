"""Mistakes of the kind "edge"."""

from ....catalogue import misconception
from ..multi_head_attention.edge import DimensionsSqueezed, ExponentialsOverflow, FirstSequenceOnly
from ..multi_head_attention.mask import ContextLengthForTokens
from .right import RightEfficient


@misconception("EfficientMultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class EfficientFirstSequenceOnly(FirstSequenceOnly, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="edge", caught_by="test_large_scores_do_not_overflow")
class EfficientExponentialsOverflow(ExponentialsOverflow, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="edge", caught_by="test_shorter_sequences")
class EfficientContextLengthForTokens(ContextLengthForTokens, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class EfficientDimensionsSqueezed(DimensionsSqueezed, RightEfficient):
    pass

"""Mistakes of the kind "contract"."""

from ....catalogue import misconception
from ..multi_head_attention.contract import (
    HeadsReturnedApart,
    InputAdded,
    NothingRefused,
    NothingReturned,
    RefusedByATypeError,
    ResultInATuple,
    WeightsReturned,
)
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class OptimizedNothingRefused(NothingRefused, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class OptimizedWeightsReturned(WeightsReturned, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class OptimizedInputAdded(InputAdded, RightOptimized):
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


@misconception("OptimizedMultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class OptimizedRefusedByATypeError(RefusedByATypeError, RightOptimized):
    pass

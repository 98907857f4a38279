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
from .right import RightEfficient


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class EfficientNothingRefused(NothingRefused, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class EfficientWeightsReturned(WeightsReturned, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class EfficientInputAdded(InputAdded, RightEfficient):
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


@misconception("EfficientMultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class EfficientRefusedByATypeError(RefusedByATypeError, RightEfficient):
    pass

"""Mistakes of the kind "gradient"."""

from ....catalogue import misconception
from ..multi_head_attention.gradient import AttentionWeightsDetached, ContextDetached, ForwardWithoutGraph
from .right import RightEfficient


@misconception("EfficientMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class EfficientAttentionWeightsDetached(AttentionWeightsDetached, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class EfficientContextDetached(ContextDetached, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class EfficientForwardWithoutGraph(ForwardWithoutGraph, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class EfficientInputDetached(RightEfficient):
    """Keys and values are detached (`.detach()`, `.data`), so no gradient reaches the input through them."""

    def project(self, x):
        return self.W_query(x), x.detach(), x.detach()

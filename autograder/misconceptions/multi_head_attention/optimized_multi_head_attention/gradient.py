"""Mistakes of the kind "gradient"."""

from ....catalogue import misconception
from ..multi_head_attention.gradient import (
    AttentionWeightsDetached,
    ContextDetached,
    ForwardWithoutGraph,
    InputDetached,
)
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedAttentionWeightsDetached(AttentionWeightsDetached, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedContextDetached(ContextDetached, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedForwardWithoutGraph(ForwardWithoutGraph, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedKeysDetached(RightOptimized):
    """The keys are detached (`.detach()`, `.data`), so no gradient reaches W_key."""

    def project(self, x):
        return self.W_query(x), self.W_key(x).detach(), x


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedInputDetached(InputDetached, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class OptimizedValuesDetached(RightOptimized):
    """The values are detached (`.detach()`, `.data`), so no gradient reaches the input through them."""

    def project(self, x):
        return self.W_query(x), self.W_key(x), x.detach()

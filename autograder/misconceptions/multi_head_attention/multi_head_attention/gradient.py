"""Mistakes of the kind "gradient"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class WeightsFrozen(RightHeads):
    """No gradient reaches the projections: they are frozen (requires_grad=False) or detached (`.detach()`, `.data`)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        for name in self.projections:
            getattr(self, name).requires_grad_(False)


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightHeads):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def weigh(self, scores):
        return super().weigh(scores).detach()


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ValuesDetached(RightHeads):
    """The values are detached (`.detach()`, `.data`), so no gradient reaches W_value."""

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x).detach()


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ContextDetached(RightHeads):
    """The context vectors are detached, so only out_proj can learn; leave out `.detach()`, `.data` and no_grad."""

    def merge(self, context):
        return super().merge(context).detach()


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class InputDetached(RightHeads):
    """The input is detached, so that no layer before this module could learn; use x as it is."""

    def forward(self, x):
        return super().forward(x.detach())


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ForwardWithoutGraph(RightHeads):
    """forward runs without a graph (`torch.no_grad()`) or detaches its result, so nothing can learn."""

    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


@misconception("MultiHeadAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class KeysDetached(RightHeads):
    """The keys are detached (`.detach()`, `.data`), so no gradient reaches W_key."""

    def project(self, x):
        return self.W_query(x), self.W_key(x).detach(), self.W_value(x)

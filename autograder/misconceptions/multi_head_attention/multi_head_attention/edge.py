"""Mistakes of the kind "edge"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class FirstSequenceOnly(RightHeads):
    """Every sequence of the batch attends to the first one's keys; keep the batch dimension."""

    def attend(self, queries, keys, values):
        return super().attend(queries, keys[:1], values)


@misconception("MultiHeadAttention", kind="edge", caught_by="test_large_scores_do_not_overflow")
class ExponentialsOverflow(RightHeads):
    """Large scores give NaN, as exp of them is infinite or 0: subtract each row's own maximum first, or use softmax."""

    def weigh(self, scores):
        exponentials = torch.exp(scores / self.head_dim**0.5)
        return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("MultiHeadAttention", kind="edge", caught_by="test_context_vectors")
class DimensionsSqueezed(RightHeads):
    """`squeeze()` drops every dimension of size 1, also a batch or a token of one; leave it out."""

    def forward(self, x):
        return super().forward(x).squeeze()

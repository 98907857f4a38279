"""Mistakes of the kind "edge"."""

import torch

from ....catalogue import misconception
from .right import RightParameters


@misconception("SelfAttention_v1", kind="edge", caught_by="test_large_scores_do_not_overflow")
class ExponentialsOverflow(RightParameters):
    """exp overflows for large scores: subtract each row's maximum first, or use torch.softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        exponentials = torch.exp(queries @ keys.T / keys.shape[-1] ** 0.5)
        return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("SelfAttention_v1", kind="edge", caught_by="test_context_vectors")
class ResultSqueezed(RightParameters):
    """squeeze() takes away dimensions of size 1, a single token's or a width of 1; leave it out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).squeeze()

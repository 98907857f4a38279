"""Mistakes of the kind "edge"."""

import torch

from ....catalogue import misconception
from .right import RightLayers


@misconception("SelfAttention_v2", kind="edge", caught_by="test_large_scores_do_not_overflow")
class LayersExponentialsOverflow(RightLayers):
    """exp overflows for large scores: subtract each row's maximum first, or use torch.softmax."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        exponentials = torch.exp(queries @ keys.T / keys.shape[-1] ** 0.5)
        return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("SelfAttention_v2", kind="edge", caught_by="test_context_vectors")
class LayersResultSqueezed(RightLayers):
    """squeeze() takes away dimensions of size 1, a single token's or a width of 1; leave it out."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).squeeze()

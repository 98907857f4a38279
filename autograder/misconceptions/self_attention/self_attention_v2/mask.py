"""Mistakes of the kind "mask"."""

import torch

from ....catalogue import misconception
from .right import RightLayers


@misconception("SelfAttention_v2", kind="mask", caught_by="test_context_vectors")
class LayersCausalMaskAdded(RightLayers):
    """Later tokens are hidden by a causal mask; here every token attends to all of them."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.T / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        return torch.softmax(scores, dim=-1) @ values


@misconception("SelfAttention_v2", kind="mask", caught_by="test_context_vectors")
class LayersCausalMaskOnTheCpu(RightLayers):
    """Later tokens are hidden; here every token attends to all of them (and the mask is made on the CPU)."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        mask = torch.triu(torch.ones(x.shape[0], x.shape[0]), diagonal=1).bool()
        scores = (queries @ keys.T).masked_fill(mask, -torch.inf)
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v2", kind="mask", caught_by="test_context_vectors")
class LayersLaterWeightsDropped(RightLayers):
    """Weights above the diagonal are dropped (tril); here every token attends to all of them."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.tril(torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)) @ values

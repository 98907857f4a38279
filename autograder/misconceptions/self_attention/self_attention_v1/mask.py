"""Mistakes of the kind "mask"."""

import torch

from ....catalogue import misconception
from .right import RightParameters


@misconception("SelfAttention_v1", kind="mask", caught_by="test_context_vectors")
class CausalMaskAdded(RightParameters):
    """Later tokens are hidden by a causal mask; here every token attends to all of them."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.T / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        return torch.softmax(scores, dim=-1) @ values


@misconception("SelfAttention_v1", kind="mask", caught_by="test_context_vectors")
class CausalMaskOnTheCpu(RightParameters):
    """Later tokens are hidden; here every token attends to all of them (and the mask is made on the CPU)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        mask = torch.triu(torch.ones(x.shape[0], x.shape[0]), diagonal=1).bool()
        scores = (queries @ keys.T).masked_fill(mask, -torch.inf)
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="mask", caught_by="test_context_vectors")
class LaterWeightsDropped(RightParameters):
    """Weights above the diagonal are dropped (tril); here every token attends to all of them."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.tril(torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)) @ values

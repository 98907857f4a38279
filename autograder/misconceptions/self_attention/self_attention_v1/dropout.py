"""Mistakes of the kind "dropout"."""

import torch

from ....catalogue import misconception
from .right import RightParameters


@misconception("SelfAttention_v1", kind="dropout", caught_by="test_context_vectors")
class DropoutAdded(RightParameters):
    """Dropout is applied to the attention weights; this module has none."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        weights = torch.nn.functional.dropout(
            torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), 0.1, self.training
        )
        return weights @ values


@misconception("SelfAttention_v1", kind="dropout", caught_by="test_context_vectors")
class DropoutOfHalfAdded(RightParameters):
    """Half of the attention weights are dropped at random; this module has no dropout."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        weights = torch.nn.functional.dropout(
            torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), 0.5, self.training
        )
        return weights @ values

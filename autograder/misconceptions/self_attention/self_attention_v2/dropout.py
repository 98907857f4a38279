"""Mistakes of the kind "dropout"."""

import torch

from ....catalogue import misconception
from .right import RightLayers


@misconception("SelfAttention_v2", kind="dropout", caught_by="test_context_vectors")
class LayersDropoutAdded(RightLayers):
    """Dropout is applied to the attention weights; this module has none."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.nn.functional.dropout(
            torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), 0.1, self.training
        )
        return weights @ values


@misconception("SelfAttention_v2", kind="dropout", caught_by="test_context_vectors")
class LayersDropoutOfHalfAdded(RightLayers):
    """Half of the attention weights are dropped at random; this module has no dropout."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        weights = torch.nn.functional.dropout(
            torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1), 0.5, self.training
        )
        return weights @ values

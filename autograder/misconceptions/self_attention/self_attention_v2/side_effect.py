"""Mistakes of the kind "side effect"."""

import torch

from ....catalogue import misconception
from .right import RightLayers


@misconception("SelfAttention_v2", kind="side effect", caught_by="test_inputs_are_unchanged")
class LayersInputCentredInPlace(RightLayers):
    """The input itself is changed in forward (`-=`, `/=`); attention takes it as it is, and leaves it so."""

    def forward(self, x):
        x -= x.mean(dim=0)
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values

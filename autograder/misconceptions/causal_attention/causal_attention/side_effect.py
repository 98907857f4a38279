"""Mistakes of the kind "side effect"."""

import torch

from ....catalogue import misconception
from .right import RightInit


@misconception("CausalAttention", kind="side effect", caught_by="test_inputs_are_unchanged")
class InputScaledInPlace(RightInit):
    """The input x is changed in place (`*=`, `/=`, a method ending in `_`); make a new tensor instead."""

    def forward(self, x):
        keys, values = self.W_key(x.clone()), self.W_value(x.clone())
        x /= keys.shape[-1] ** 0.5
        scores = (x @ self.W_query.weight.T) @ keys.transpose(1, 2)
        if self.W_query.bias is not None:
            scores = scores + (self.W_query.bias / keys.shape[-1] ** 0.5) @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1)) @ values

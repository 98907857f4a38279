"""Mistakes of the kind "side effect"."""

import torch

from ....catalogue import misconception
from .right import RightParameters


@misconception("SelfAttention_v1", kind="side effect", caught_by="test_inputs_are_unchanged")
class InputCentredInPlace(RightParameters):
    """The input itself is changed in forward (`-=`, `/=`); attention takes it as it is, and leaves it so."""

    def forward(self, x):
        x -= x.mean(dim=0)
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values

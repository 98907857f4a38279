"""Mistakes of the kind "device"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="device", caught_by="test_follows_device")
class MaskIsNoBuffer(RightHeads):
    """A tensor stays on the CPU when the module moves: make a mask a buffer, and name no device in the code."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.mask
        self.mask = torch.ones(context_length, context_length).triu(diagonal=1).bool()

"""Mistakes of the kind "device"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightPass


@misconception("CausalAttention", kind="device", caught_by="test_follows_device")
class MaskIsNoBuffer(RightPass):
    """A tensor stays on the CPU when the module moves: make a mask a buffer, and name no device but that of x."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.ones(context_length, context_length).triu(diagonal=1).bool()

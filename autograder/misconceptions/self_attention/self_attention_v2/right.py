"""What the mistakes in this exercise are made in: right but for what a mistake changes."""

import torch
from torch import nn


class RightLayers(nn.Module):
    """The layers as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)


class RightPass(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their layers."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values

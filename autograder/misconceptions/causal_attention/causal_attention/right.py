"""What the mistakes in this exercise are made in: right but for what a mistake changes."""

import torch
from torch import nn


class RightInit(nn.Module):
    """Layers, mask and dropout as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x)

    def hidden(self, scores):
        return self.mask[: scores.shape[-2], : scores.shape[-1]]


class RightPass(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their layers, mask or dropout."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


class RightWeights(RightInit):
    """Causal weights and values as they should be; the entries that build on it differ in what they do with them."""

    def weigh(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1), values

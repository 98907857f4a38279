"""What the mistakes in this exercise are made in: right but for what a mistake changes."""

import torch
from torch import nn


class RightParameters(nn.Module):
    """The parameters as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def project(self, x):
        return x @ self.W_query, x @ self.W_key, x @ self.W_value


class RightForward(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their parameters."""

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values

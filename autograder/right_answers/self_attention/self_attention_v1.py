"""Right answers to `SelfAttention_v1`, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("SelfAttention_v1")
class ScaledQueries(nn.Module):
    """the queries are scaled instead of the scores"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.scale = 1.0 / math.sqrt(d_out)

    def forward(self, x):
        queries = torch.matmul(x, self.W_query) * self.scale
        weights = F.softmax(torch.mm(queries, torch.mm(x, self.W_key).t()), dim=1)
        return torch.mm(weights, torch.mm(x, self.W_value))


@right_answer("SelfAttention_v1")
class LibraryAttention(nn.Module):
    """F.scaled_dot_product_attention, which the classes may call"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3))

    def forward(self, x):
        return F.scaled_dot_product_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


@right_answer("SelfAttention_v1")
class KeepsItsWeights(nn.Module):
    """the attention weights are kept for a plot"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.history = []

    def forward(self, x):
        keys = x @ self.W_key
        self.weights = torch.softmax(x @ self.W_query @ keys.T / keys.shape[-1] ** 0.5, dim=-1)
        self.history.append(self.weights)
        return self.weights @ (x @ self.W_value)


@right_answer("SelfAttention_v1")
class FusedProjection(nn.Module):
    """one product for queries, keys and values; parameters registered by name"""

    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x):
        fused = x @ torch.cat([self.W_query, self.W_key, self.W_value], dim=1)
        queries, keys, values = fused.chunk(3, dim=-1)
        scores = torch.einsum("qd,kd->qk", queries, keys)
        return torch.einsum("qk,kd->qd", (scores / keys.size(1) ** 0.5).softmax(dim=-1), values)


@right_answer("SelfAttention_v1")
class TokenByToken(nn.Module):
    """one query at a time"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def attend(self, query, keys, values):
        scores = keys @ query / torch.tensor(self.d_out).sqrt()
        return torch.softmax(scores, dim=0) @ values

    def forward(self, x):
        keys, values = x @ self.W_key, x @ self.W_value
        return torch.stack([self.attend(token @ self.W_query, keys, values) for token in x])


@right_answer("SelfAttention_v1")
class ParametersThroughFunctions(nn.Module):
    """requires_grad_() on the parameters, bmm with a batch of one"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1)).requires_grad_()
        self.W_key = nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1))
        self.W_value = nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1))

    def forward(self, x):
        queries, keys, values = ((x @ w).unsqueeze(0) for w in (self.W_query, self.W_key, self.W_value))
        weights = torch.softmax(torch.bmm(queries, keys.transpose(1, 2)) / keys.shape[2] ** 0.5, dim=2)
        return torch.bmm(weights, values).squeeze(0)

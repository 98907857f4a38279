"""Right answers to `EfficientMultiHeadAttention`, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("EfficientMultiHeadAttention")
class LibraryWithInputAsKeyAndValue(nn.Module):
    """F.scaled_dot_product_attention, causal"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.p = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        b, T, d = x.shape
        queries = self.W_query(x).view(b, T, self.num_heads, -1).transpose(1, 2)
        inputs = x.view(b, T, self.num_heads, -1).transpose(1, 2)
        p = self.p if self.training else 0.0
        context = F.scaled_dot_product_attention(queries, inputs, inputs, dropout_p=p, is_causal=True)
        return self.out_proj(context.transpose(1, 2).reshape(b, T, d))


@right_answer("EfficientMultiHeadAttention")
class EfficientTokenByToken(nn.Module):
    """each token with the tokens up to it, so that no mask is needed"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        queries, inputs = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in (self.W_query(x), x))
        tokens = []
        for t in range(x.shape[1]):
            past = inputs[:, :, : t + 1]
            scores = queries[:, :, t : t + 1] @ past.mT / past.shape[-1] ** 0.5
            tokens.append(self.dropout(scores.softmax(-1)) @ past)
        return self.out_proj(torch.cat(tokens, dim=2).transpose(1, 2).flatten(2))


@right_answer("EfficientMultiHeadAttention")
class EfficientByBmm(nn.Module):
    """bmm over batch times heads, an integer mask as a non-persistent buffer, F.linear by hand"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("not divisible")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        order = torch.arange(context_length)
        self.register_buffer("later", (order[None] > order[:, None]).long(), persistent=False)

    def forward(self, x):
        b, T, d = x.shape

        def fold(t):
            return t.reshape(b, T, self.num_heads, -1).permute(0, 2, 1, 3).reshape(b * self.num_heads, T, -1)

        queries, inputs = fold(F.linear(x, self.W_query.weight, self.W_query.bias)), fold(x)
        scores = torch.bmm(queries, inputs.permute(0, 2, 1)) / math.sqrt(inputs.shape[-1])
        weights = torch.softmax(scores.masked_fill(self.later[:T, :T] == 1, -torch.inf), dim=2)
        context = torch.bmm(self.dropout(weights), inputs).view(b, self.num_heads, T, -1)
        return self.out_proj(context.permute(0, 2, 1, 3).contiguous().view(b, T, d))


@right_answer("EfficientMultiHeadAttention")
class EfficientInSteps(nn.Module):
    """a method for each step"""

    projections = ("W_query",)

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        for name in self.projections:
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def project(self, x):
        return self.W_query(x), x, x

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], -torch.inf)

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=-1)

    def attend(self, queries, keys, values):
        return self.dropout(self.weigh(self.hide(queries @ keys.mT))) @ values

    def merge(self, context):
        return context.transpose(1, 2).flatten(2)

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.out_proj(self.merge(self.attend(queries, keys, values)))

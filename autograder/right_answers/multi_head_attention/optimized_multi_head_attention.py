"""Right answers to `OptimizedMultiHeadAttention`, as different students write them."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("OptimizedMultiHeadAttention")
class LibraryWithInputAsValue(nn.Module):
    """F.scaled_dot_product_attention with an additive mask"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.p = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        queries, keys, values = (
            t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in (self.W_query(x), self.W_key(x), x)
        )
        mask = torch.full((x.shape[1], x.shape[1]), -torch.inf, dtype=x.dtype, device=x.device).triu(1)
        p = self.p * self.training
        context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=p)
        return self.out_proj(context.transpose(1, 2).flatten(2))


@right_answer("OptimizedMultiHeadAttention")
class OptimizedHeadByHead(nn.Module):
    """a loop over slices of queries, keys and input"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query, self.W_key = nn.Linear(d_in, d_out, qkv_bias), nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("later", torch.ones(context_length, context_length).triu(diagonal=1) > 0)

    def forward(self, x):
        later = self.later[: x.shape[1], : x.shape[1]]
        found = []
        for q, k, v in zip(*(t.chunk(self.num_heads, -1) for t in (self.W_query(x), self.W_key(x), x)), strict=True):
            scores = (q @ k.mT).masked_fill(later, -torch.inf) / q.shape[-1] ** 0.5
            found.append(self.dropout(scores.softmax(dim=-1)) @ v)
        return self.out_proj(torch.cat(found, -1))


@right_answer("OptimizedMultiHeadAttention")
class OptimizedByEinsum(nn.Module):
    """einsum over (b, T, h, hd), finfo.min for later keys"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(num_heads)
        self.shape = (num_heads, d_out // num_heads)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = dropout

    def forward(self, x):
        q, k, v = (t.unflatten(-1, self.shape) for t in (self.W_query(x), self.W_key(x), x))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k).mul(self.shape[1] ** -0.5)
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, torch.finfo(x.dtype).min)
        weights = nn.functional.dropout(scores.softmax(-1), p=self.dropout, training=self.training)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


@right_answer("OptimizedMultiHeadAttention")
class OptimizedInSteps(nn.Module):
    """a method for each step"""

    projections = ("W_query", "W_key")

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
        return self.W_query(x), self.W_key(x), x

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

"""Right answers to `MultiHeadAttention`, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("MultiHeadAttention")
class AsInBooks(nn.Module):
    """a float mask as a buffer, masked_fill_ in place, assert, contiguous and view"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("hidden", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        b, num_tokens, _ = x.shape
        keys = self.W_key(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = self.W_query(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        scores = queries @ keys.transpose(2, 3)
        scores.masked_fill_(self.hidden.bool()[:num_tokens, :num_tokens], -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        context = (self.dropout(weights) @ values).transpose(1, 2)
        return self.out_proj(context.contiguous().view(b, num_tokens, self.d_out))


@right_answer("MultiHeadAttention")
class TheLibrarysAttention(nn.Module):
    """F.scaled_dot_product_attention, causal, with dropout in training"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.num_heads, self.p = num_heads, dropout

    def forward(self, x):
        projected = (layer(x) for layer in (self.W_query, self.W_key, self.W_value))
        queries, keys, values = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in projected)
        p = self.p if self.training else 0.0
        context = F.scaled_dot_product_attention(queries, keys, values, dropout_p=p, is_causal=True)
        return self.out_proj(context.transpose(1, 2).flatten(-2))


@right_answer("MultiHeadAttention")
class FusedWeights(nn.Module):
    """one product with the weights joined at run time, split by chunk; an inverted mask made in forward"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError
        self.h, self.p = num_heads, dropout
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        layers = (self.W_query, self.W_key, self.W_value)
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
        fused = F.linear(x, weight, bias)
        fused = fused.reshape(*x.shape[:2], 3, self.h, -1).permute(2, 0, 3, 1, 4)
        queries, keys, values = fused.unbind(0)
        scores = queries @ keys.mT / math.sqrt(keys.shape[-1])
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        weights = F.dropout(scores.masked_fill(~seen, float("-inf")).softmax(-1), self.p, self.training)
        return self.out_proj((weights @ values).permute(0, 2, 1, 3).reshape(*x.shape[:2], -1))


@right_answer("MultiHeadAttention")
class HeadByHead(nn.Module):
    """a loop over the heads, slices of the projections, cat at the end; an additive mask"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        bias = torch.full((context_length, context_length), -torch.inf).triu(1)
        self.register_buffer("causal_bias", bias, persistent=False)

    def forward(self, x):
        T = x.size(1)
        projected = (layer(x).split(self.head_dim, dim=-1) for layer in (self.W_query, self.W_key, self.W_value))
        found = []
        for q, k, v in zip(*projected, strict=True):
            scores = torch.bmm(q, k.transpose(1, 2)) * self.head_dim**-0.5 + self.causal_bias[:T, :T]
            found.append(torch.bmm(self.drop(F.softmax(scores, dim=2)), v))
        return self.out_proj(torch.cat(found, dim=2))


@right_answer("MultiHeadAttention")
class EinsumThroughout(nn.Module):
    """einsum, queries scaled first, finfo.min in place of -inf, a mask made by arange"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("no whole number of heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (f(x).unflatten(2, (self.num_heads, -1)) for f in (self.W_query, self.W_key, self.W_value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q / q.shape[-1] ** 0.5, k)
        place = torch.arange(x.shape[1], device=x.device)
        scores = torch.where(place[:, None] >= place, scores, torch.finfo(scores.dtype).min)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", self.dropout(scores.softmax(-1)), v).flatten(2))


@right_answer("MultiHeadAttention")
class BatchTimesHeads(nn.Module):
    """batch and heads folded together for baddbmm, an additive mask of -1e9 from a lower triangle"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, (d_out, num_heads)
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(p=dropout)
        self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length)))

    def fold(self, t):
        return torch.cat(t.chunk(self.num_heads, dim=-1), dim=0)

    def forward(self, x):
        T = x.shape[1]
        queries, keys, values = self.fold(self.W_query(x)), self.fold(self.W_key(x)), self.fold(self.W_value(x))
        hidden = ((1.0 - self.tril[:T, :T]) * -1e9).to(x.dtype).expand(len(queries), T, T)
        scores = torch.baddbmm(hidden, queries, keys.mT, alpha=1 / math.sqrt(keys.shape[-1]))
        context = torch.bmm(self.attn_dropout(nn.Softmax(dim=-1)(scores)), values)
        return self.out_proj(torch.cat(context.chunk(self.num_heads, dim=0), dim=-1))


@right_answer("MultiHeadAttention")
class InFloat64Inside(nn.Module):
    """scores and softmax in float64, the input's dtype outside; weights renormalised after the mask; dropout by hand"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.keep = num_heads, 1 - dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("seen", torch.ones(context_length, context_length, dtype=torch.bool).tril())

    def forward(self, x):
        b, T, _ = x.shape
        queries, keys, values = (
            layer(x).double().reshape(b, T, self.num_heads, -1).movedim(2, 1)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        scores = (queries @ keys.mT / keys.shape[-1] ** 0.5).masked_fill(~self.seen[:T, :T], -math.inf)
        exponentials = torch.exp(scores - scores.max(dim=-1, keepdim=True).values) * self.seen[:T, :T]
        weights = exponentials / exponentials.sum(dim=-1, keepdim=True)
        if self.training and self.keep < 1:
            weights = weights * torch.empty_like(weights).bernoulli_(self.keep) / self.keep
        return self.out_proj((weights @ values).movedim(1, 2).reshape(b, T, -1).to(x.dtype))


@right_answer("MultiHeadAttention")
class KeepsItsWeightsForAPlot(nn.Module):
    """helper methods, a mask with batch and head dimensions, the weights kept for a plot"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(1, 1, context_length, context_length, dtype=torch.uint8)))
        self.history = []

    def heads(self, t):
        return t.view(t.size(0), t.size(1), self.num_heads, t.size(2) // self.num_heads).transpose(1, 2)

    def forward(self, x):
        T = x.size(1)
        q, k, v = self.heads(self.W_query(x)), self.heads(self.W_key(x)), self.heads(self.W_value(x))
        self.weights = (q @ k.mT / k.size(-1) ** 0.5).masked_fill(self.mask[..., :T, :T] == 0, -1e30).softmax(-1)
        self.history.append(self.weights)
        return self.out_proj((self.dropout(self.weights) @ v).transpose(1, 2).reshape(x.size(0), T, -1))


@right_answer("MultiHeadAttention")
class InSteps(nn.Module):
    """a method for each step"""

    projections = ("W_query", "W_key", "W_value")

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
        return self.W_query(x), self.W_key(x), self.W_value(x)

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

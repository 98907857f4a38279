"""Right answers to `TransformerBlock`, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("TransformerBlock")
class BlockByTheLibrary(nn.Module):
    """F.scaled_dot_product_attention, causal, and nn.GELU"""

    def __init__(self, d, num_heads, context_length):
        super().__init__()
        assert d % num_heads == 0, "d must be divisible by num_heads"
        self.num_heads = num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query, self.W_key, self.W_value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.linear1, self.gelu, self.linear2 = nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)

    def attend(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(found.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.linear2(self.gelu(self.linear1(self.norm2(x))))


@right_answer("TransformerBlock")
class BlockHeadByHead(nn.Module):
    """a loop over the heads, a mask made in forward"""

    def __init__(self, d, num_heads, context_length):
        super().__init__()
        if d % num_heads:
            raise ValueError("no whole number")
        self.width = d // num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query = nn.Linear(d, d)
        self.W_key = nn.Linear(d, d)
        self.W_value = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.linear1 = nn.Linear(d, d * 4)
        self.linear2 = nn.Linear(d * 4, d)

    def forward(self, x):
        T = x.size(1)
        seen = torch.ones(T, T, device=x.device).tril() == 1
        given, x = x, self.norm1(x)
        heads = []
        for q, k, v in zip(
            self.W_query(x).split(self.width, -1),
            self.W_key(x).split(self.width, -1),
            self.W_value(x).split(self.width, -1),
            strict=True,
        ):
            scores = torch.where(seen, q @ k.mT / math.sqrt(self.width), -torch.inf)
            heads.append(F.softmax(scores, dim=-1) @ v)
        x = given + self.out_proj(torch.cat(heads, dim=-1))
        h = self.linear1(self.norm2(x))
        h = 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))
        return self.linear2(h) + x


@right_answer("TransformerBlock")
class BlockByEinsum(nn.Module):
    """einsum, an additive mask in a buffer, the norms written out"""

    def __init__(self, d, num_heads, context_length):
        super().__init__()
        if d % num_heads != 0:
            raise ValueError(f"{d} / {num_heads}")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d)
        for name in ("W_query", "W_key", "W_value", "out_proj"):
            setattr(self, name, nn.Linear(d, d))
        self.norm2 = nn.LayerNorm(d)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.register_buffer("mask", torch.full((context_length, context_length), -torch.inf).triu(1))

    def normed(self, norm, x):
        mean, variance = x.mean(dim=-1, keepdim=True), x.var(dim=-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(variance + norm.eps) * norm.weight + norm.bias

    def forward(self, x):
        T = x.shape[1]
        y = self.normed(self.norm1, x)
        q, k, v = (layer(y).unflatten(2, (self.h, -1)) for layer in (self.W_query, self.W_key, self.W_value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5 + self.mask[:T, :T]
        found = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2)
        x = x + self.out_proj(found)
        return x + self.linear2(F.gelu(self.linear1(self.normed(self.norm2, x))))

"""Attention one token at a time, beyond the catalogue. Classes have names, by which their source is found."""

import torch
import torch.nn.functional as F
from torch import nn

from . import rewritten, right, unlisted

# attention_flops, kv_cache_bytes


@rewritten("multiplications_alone")
def _(b, T, d, h):
    return b * (4 * T * d**2 + 2 * T**2 * d)


@rewritten("heads_of_full_width")
def _(b, T, d, h):
    total = 0
    for _ in range(4):
        total += 2 * T * d * d
    for _ in range(h):
        total += 2 * T * T * d + 2 * T * T * d
    return total * b


@unlisted("attention_flops")
def _(b, T, d, h):
    return b * (8 * T * d**2 + 4 * T**2 * d) - b * T * h


@rewritten("keys_alone")
def _(layers, kv_heads, head_dim, tokens, bytes_per_number):
    return torch.Size((layers, kv_heads, tokens, head_dim)).numel() * bytes_per_number


@unlisted("kv_cache_bytes")
def _(layers, kv_heads, head_dim, tokens, bytes_per_number):
    return 2 * layers * kv_heads * (head_dim + 1) * tokens * bytes_per_number


# KVCache


@rewritten("NewTokensFirst")
class PutsThemInFront:
    def __init__(self):
        self.parts = []

    def append(self, keys, values):
        self.parts.insert(0, (keys, values))

    @property
    def keys(self):
        return torch.cat([k for k, _ in self.parts], dim=-2) if self.parts else None

    @property
    def values(self):
        return torch.cat([v for _, v in self.parts], dim=-2) if self.parts else None


@rewritten("CachedInTheThirdDimension")
class KnowsFourDimensionsAlone:
    keys = values = None

    def append(self, k, v):
        self.keys = k if self.keys is None else torch.concat((self.keys, k), 2)
        self.values = v if self.values is None else torch.concat((self.values, v), 2)


@unlisted("KVCache")
class ForgetsEveryFourthStep:
    def __init__(self):
        self.keys = self.values = None
        self.step = 0

    def append(self, keys, values):
        self.step += 1
        if self.step % 4 == 0:
            return
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], dim=-2)
        self.values = values if self.values is None else torch.cat([self.values, values], dim=-2)


# CachedMultiHeadAttention


@rewritten("MaskNotOffset")
class BeginsAtTopLeft(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0
        self.h = num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        q, k, v = (f(x).unflatten(2, (self.h, -1)).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        if cache is not None:
            cache.append(k, v)
            k, v = cache.keys, cache.values
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(found.transpose(1, 2).flatten(2))


@rewritten("XKeptInTheCache")
class ReadsTheWholeTextAgain(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0
        self.h = num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        t, text = x.shape[1], x
        if cache is not None:
            cache.append(x, x)
            text = cache.keys
        q, k, v = (f(text).unflatten(2, (self.h, -1)).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(found.transpose(1, 2).flatten(2))[:, -t:]


@right("CachedMultiHeadAttention")
class FoldsHeadsAway(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("no whole number")
        self.h, self.hd = num_heads, d_out // num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)

    def fold(self, one):
        return one.unflatten(2, (self.h, self.hd)).transpose(1, 2).flatten(0, 1)

    def forward(self, x, cache=None):
        q, k, v = self.fold(self.W_query(x)), self.fold(self.W_key(x)), self.fold(self.W_value(x))
        before = 0
        if cache is not None:
            before = 0 if cache.keys is None else cache.keys.shape[1]
            cache.append(k, v)
            k, v = cache.keys, cache.values
        scores = torch.baddbmm(torch.zeros_like(q[:, :, :1]), q, k.mT, alpha=self.hd**-0.5)
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(before + 1)
        found = torch.bmm(scores.masked_fill(hidden, float("-inf")).softmax(2), v)
        return self.out_proj(found.unflatten(0, (-1, self.h)).transpose(1, 2).flatten(2))


# share_heads, GroupedQueryAttention


@rewritten("groups_in_turn")
def _(x, num_heads):
    return torch.cat([x] * (num_heads // x.shape[1]), dim=1)


@unlisted("share_heads")
def _(x, num_heads):
    return x.repeat_interleave(num_heads // x.shape[1], dim=1).roll(1, dims=1)


@rewritten("GroupsRepeatedInTurn")
class HandsGroupsOut(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, num_kv_groups):
        super().__init__()
        assert d_out % num_heads == 0
        assert num_heads % num_kv_groups == 0
        self.h, self.g, self.hd = num_heads, num_kv_groups, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key, self.W_value = (nn.Linear(d_in, self.g * self.hd, bias=False) for _ in range(2))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q, k, v = (f(x).split(self.hd, dim=2) for f in (self.W_query, self.W_key, self.W_value))
        heads = [
            F.scaled_dot_product_attention(q[i], k[i % self.g], v[i % self.g], is_causal=True) for i in range(self.h)
        ]
        return self.out_proj(torch.cat(heads, dim=2))


@unlisted("GroupedQueryAttention")
class TakesTheNextGroupsValues(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, num_kv_groups):
        super().__init__()
        assert d_out % num_heads == 0
        assert num_heads % num_kv_groups == 0
        self.h, self.g, self.hd = num_heads, num_kv_groups, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key, self.W_value = (nn.Linear(d_in, self.g * self.hd, bias=False) for _ in range(2))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q, k, v = (f(x).split(self.hd, dim=2) for f in (self.W_query, self.W_key, self.W_value))
        group = [i // (self.h // self.g) for i in range(self.h)]
        heads = [
            F.scaled_dot_product_attention(q[i], k[j], v[(j + 1) % self.g], is_causal=True) for i, j in enumerate(group)
        ]
        return self.out_proj(torch.cat(heads, dim=2))

"""Right answers to `CachedMultiHeadAttention`, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("CachedMultiHeadAttention")
class CachedInSteps(nn.Module):
    """a method for each step"""

    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def hide(self, scores):
        new, seen = scores.shape[-2:]
        mask = torch.ones(new, seen, dtype=torch.bool, device=scores.device).triu(diagonal=1 + seen - new)
        return scores.masked_fill(mask, -torch.inf)

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=-1)

    def merge(self, found):
        return found.transpose(1, 2).flatten(2)

    def forward(self, x, cache=None):
        queries, keys = self.split(self.W_query(x)), self.split(self.W_key(x))
        values = self.split(self.W_value(x))
        if cache is not None:
            cache.append(keys, values)
            keys, values = cache.keys, cache.values
        weights = self.weigh(self.hide(queries @ keys.mT))
        return self.out_proj(self.merge(weights @ values))


@right_answer("CachedMultiHeadAttention")
class CachedByTheLibrary(nn.Module):
    """F.scaled_dot_product_attention with a mask of what is seen"""

    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        q, k, v = (
            f(x).view(b, t, self.num_heads, -1).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value)
        )
        if cache is None:
            found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            cache.append(k, v)
            n = cache.keys.shape[-2]
            seen = torch.ones(t, n, dtype=torch.bool, device=x.device).tril(n - t)
            found = F.scaled_dot_product_attention(q, cache.keys, cache.values, attn_mask=seen)
        return self.out_proj(found.transpose(1, 2).reshape(b, t, -1))


@right_answer("CachedMultiHeadAttention")
class CachedByPlaces(nn.Module):
    """einsum, and a mask by comparing places, which begin where the cache ends"""

    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError
        self.h = num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        before = 0 if cache is None or cache.keys is None else cache.keys.size(2)
        q, k, v = (layer(x).unflatten(2, (self.h, -1)) for layer in (self.W_query, self.W_key, self.W_value))
        k, v = k.permute(0, 2, 1, 3), v.permute(0, 2, 1, 3)
        if cache is not None:
            cache.append(k, v)
            k, v = cache.keys, cache.values
        places = before + torch.arange(x.size(1), device=x.device)
        later = torch.arange(k.size(2), device=x.device)[None] > places[:, None]
        scores = torch.einsum("bqhd,bhkd->bhqk", q, k) / math.sqrt(q.size(-1))
        weights = torch.where(later, torch.full_like(scores, float("-inf")), scores).softmax(-1)
        return self.out_proj(torch.einsum("bhqk,bhkd->bqhd", weights, v).flatten(2))


@right_answer("CachedMultiHeadAttention")
class CachedUnsplit(nn.Module):
    """the cache keeps keys and values before they are split; a loop over the heads"""

    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0
        self.width = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        keys, values = self.W_key(x), self.W_value(x)
        if cache is not None:
            cache.append(keys, values)
            keys, values = cache.keys, cache.values
        pieces = (one.split(self.width, dim=-1) for one in (self.W_query(x), keys, values))
        heads = []
        for q, k, v in zip(*pieces, strict=True):
            scores = torch.bmm(q, k.transpose(1, 2)) * self.width**-0.5
            hidden = torch.full_like(scores, -torch.inf).triu(k.shape[1] - q.shape[1] + 1)
            heads.append(torch.bmm(F.softmax(scores + hidden, dim=2), v))
        return self.out_proj(torch.cat(heads, dim=2))


@right_answer("CachedMultiHeadAttention")
class CachedTokenByToken(nn.Module):
    """one token at a time sees what is there so far, so that no mask is needed; other names for the arguments"""

    def __init__(self, width_in, width_out, heads):
        super().__init__()
        if width_out % heads != 0:
            raise ValueError("width_out must be divisible by heads")
        self.heads = heads
        self.W_query = nn.Linear(width_in, width_out, bias=False)
        self.W_key = nn.Linear(width_in, width_out, bias=False)
        self.W_value = nn.Linear(width_in, width_out, bias=False)
        self.out_proj = nn.Linear(width_out, width_out)

    def cut(self, one):
        return one.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, tokens, cache=None):
        q, k, v = self.cut(self.W_query(tokens)), self.cut(self.W_key(tokens)), self.cut(self.W_value(tokens))
        n = 0
        if cache is not None:
            n = 0 if cache.keys is None else cache.keys.shape[-2]
            cache.append(k, v)
            k, v = cache.keys, cache.values
        found = []
        for i in range(tokens.shape[1]):
            seen = n + i + 1
            scores = q[:, :, i : i + 1] @ k[:, :, :seen].mT / q.shape[-1] ** 0.5
            found.append(scores.softmax(-1) @ v[:, :, :seen])
        return self.out_proj(torch.cat(found, dim=2).transpose(1, 2).flatten(2))


@right_answer("CachedMultiHeadAttention")
class CachedInTwoParts(nn.Module):
    """scores with what is cached, where nothing is hidden, beside those of the step, with one softmax over both"""

    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        layers = (self.W_query, self.W_key, self.W_value)
        q, k, v = (layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for layer in layers)
        q = q / math.sqrt(q.shape[-1])
        scores = (q @ k.mT).masked_fill(q.new_ones(x.shape[1], x.shape[1]).triu(1) > 0, -torch.inf)
        if cache is not None:
            if cache.keys is not None:
                scores = torch.cat([q @ cache.keys.mT, scores], dim=-1)
            cache.append(k, v)
            v = cache.values
        return self.out_proj((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))

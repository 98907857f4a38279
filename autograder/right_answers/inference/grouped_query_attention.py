"""Right answers to `GroupedQueryAttention`, as different students write them."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("GroupedQueryAttention")
class GroupedInSteps(nn.Module):
    """a method for each step"""

    def __init__(self, d_in, d_out, context_length, num_heads, num_kv_groups):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        if num_heads % num_kv_groups != 0:
            raise ValueError("num_heads must be divisible by num_kv_groups")
        self.num_heads, self.num_kv_groups, self.head_dim = num_heads, num_kv_groups, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_groups * self.head_dim, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_groups * self.head_dim, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1))

    def split(self, x, pieces):
        return x.unflatten(-1, (pieces, self.head_dim)).transpose(1, 2)

    def share(self, x):
        return x.repeat_interleave(self.num_heads // self.num_kv_groups, dim=1)

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], -torch.inf)

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=-1)

    def merge(self, found):
        return found.transpose(1, 2).flatten(2)

    def forward(self, x):
        queries = self.split(self.W_query(x), self.num_heads)
        keys = self.share(self.split(self.W_key(x), self.num_kv_groups))
        values = self.share(self.split(self.W_value(x), self.num_kv_groups))
        weights = self.weigh(self.hide(queries @ keys.mT))
        return self.out_proj(self.merge(weights @ values))


@right_answer("GroupedQueryAttention")
class GroupedByTheLibrary(nn.Module):
    """F.scaled_dot_product_attention with enable_gqa"""

    def __init__(self, d_in, d_out, context_length, num_heads, num_kv_groups):
        super().__init__()
        assert d_out % num_heads == 0
        assert num_heads % num_kv_groups == 0
        self.h, self.g = num_heads, num_kv_groups
        hd = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_groups * hd, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_groups * hd, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        b, T, _ = x.shape
        q = self.W_query(x).view(b, T, self.h, -1).transpose(1, 2)
        k = self.W_key(x).view(b, T, self.g, -1).transpose(1, 2)
        v = self.W_value(x).view(b, T, self.g, -1).transpose(1, 2)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out_proj(found.transpose(1, 2).reshape(b, T, -1))


@right_answer("GroupedQueryAttention")
class GroupedByEinsum(nn.Module):
    """queries cut into (groups, heads of a group), keys and values not repeated at all"""

    def __init__(self, d_in, d_out, context_length, num_heads, num_kv_groups):
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_groups:
            raise ValueError("these do not divide each other")
        self.groups, self.each, self.hd = num_kv_groups, num_heads // num_kv_groups, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key, self.W_value = (nn.Linear(d_in, self.groups * self.hd, bias=False) for _ in range(2))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q = self.W_query(x).unflatten(-1, (self.groups, self.each, self.hd))
        k, v = (layer(x).unflatten(-1, (self.groups, self.hd)) for layer in (self.W_key, self.W_value))
        scores = torch.einsum("bqged,bkgd->bgeqk", q, k) * self.hd**-0.5
        T = x.shape[1]
        hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.out_proj(torch.einsum("bgeqk,bkgd->bqged", weights, v).flatten(2))


@right_answer("GroupedQueryAttention")
class GroupedHeadByHead(nn.Module):
    """a loop over the heads, each with the slice of its group"""

    def __init__(self, d_in, d_out, context_length, num_heads, num_kv_groups):
        super().__init__()
        if d_out % num_heads != 0 or num_heads % num_kv_groups != 0:
            raise ValueError(f"{d_out} / {num_heads} / {num_kv_groups}")
        self.width, self.num_heads, self.num_kv_groups = d_out // num_heads, num_heads, num_kv_groups
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_groups * self.width, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_groups * self.width, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q = self.W_query(x).split(self.width, dim=-1)
        k = self.W_key(x).split(self.width, dim=-1)
        v = self.W_value(x).split(self.width, dim=-1)
        found = []
        for i in range(self.num_heads):
            group = i * self.num_kv_groups // self.num_heads
            found.append(F.scaled_dot_product_attention(q[i], k[group], v[group], is_causal=True))
        return self.out_proj(torch.cat(found, dim=-1))


@right_answer("GroupedQueryAttention")
class GroupedExpanded(nn.Module):
    """keys and values expanded beside themselves, other names for the arguments, an additive mask"""

    def __init__(self, width_in, width_out, longest, heads, groups):
        super().__init__()
        if width_out % heads != 0:
            raise ValueError("width_out must be divisible by heads")
        if heads % groups != 0:
            raise ValueError("heads must be divisible by groups")
        self.heads, self.groups, self.hd = heads, groups, width_out // heads
        self.W_query = nn.Linear(width_in, width_out, bias=False)
        self.W_key = nn.Linear(width_in, groups * self.hd, bias=False)
        self.W_value = nn.Linear(width_in, groups * self.hd, bias=False)
        self.out_proj = nn.Linear(width_out, width_out)
        self.register_buffer("hidden", torch.full((longest, longest), -torch.inf).triu(1), persistent=False)

    def forward(self, x):
        b, T, _ = x.shape
        q = self.W_query(x).view(b, T, self.heads, self.hd).permute(0, 2, 1, 3)

        def shared(projected):
            each = projected.view(b, T, self.groups, 1, self.hd).expand(-1, -1, -1, self.heads // self.groups, -1)
            return each.reshape(b, T, self.heads, self.hd).permute(0, 2, 1, 3)

        scores = torch.matmul(q, shared(self.W_key(x)).transpose(2, 3)) / self.hd**0.5
        weights = F.softmax(scores + self.hidden[:T, :T], dim=3)
        return self.out_proj(torch.matmul(weights, shared(self.W_value(x))).permute(0, 2, 1, 3).reshape(b, T, -1))

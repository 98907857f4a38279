"""Right answers to `CrossAttention`, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer
from solutions.attention_masks import masked_attention, to_sdpa_mask


@right_answer("CrossAttention")
class CrossInSteps(nn.Module):
    """a method for each step"""

    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def hide(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask[:, None, None, :], -torch.inf)

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=-1)

    def mend(self, weights):
        return torch.nan_to_num(weights)

    def merge(self, found):
        return found.transpose(1, 2).flatten(2)

    def forward(self, x, context, context_mask=None):
        queries = self.split(self.W_query(x))
        keys, values = self.split(self.W_key(context)), self.split(self.W_value(context))
        weights = self.mend(self.weigh(self.hide(queries @ keys.mT, context_mask)))
        return self.out_proj(self.merge(weights @ values))


@right_answer("CrossAttention")
class CrossByTheLibrary(nn.Module):
    """F.scaled_dot_product_attention, the mask turned round"""

    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        b, T, _ = x.shape
        queries = self.W_query(x).view(b, T, self.num_heads, -1).transpose(1, 2)
        keys = self.W_key(context).view(b, context.shape[1], self.num_heads, -1).transpose(1, 2)
        values = self.W_value(context).view(b, context.shape[1], self.num_heads, -1).transpose(1, 2)
        seen = None if context_mask is None else to_sdpa_mask(context_mask[:, None, None])
        found = F.scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
        return self.out_proj(found.transpose(1, 2).reshape(b, T, -1))


@right_answer("CrossAttention")
class CrossByEinsum(nn.Module):
    """einsum throughout, the lowest number for -inf, hidden weights zero afterwards"""

    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError
        self.h = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key, self.W_value = (nn.Linear(d_context, d_out, bias=False) for _ in range(2))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        q = self.W_query(x).unflatten(2, (self.h, -1))
        k, v = (layer(context).unflatten(2, (self.h, -1)) for layer in (self.W_key, self.W_value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if context_mask is not None:
            hidden = context_mask.unsqueeze(1).unsqueeze(2)
            scores = torch.where(hidden, torch.finfo(scores.dtype).min, scores)
        weights = scores.softmax(dim=-1)
        if context_mask is not None:
            weights = weights * ~hidden
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


@right_answer("CrossAttention")
class CrossHeadByHead(nn.Module):
    """a loop over the heads, slices of the projections, each through masked_attention"""

    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0
        self.width = d_out // num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        if context_mask is None:
            mask = torch.zeros(1, 1, context.size(1), dtype=torch.bool, device=x.device)
        else:
            mask = context_mask.unsqueeze(1)
        pieces = (t.split(self.width, dim=-1) for t in (self.W_query(x), self.W_key(context), self.W_value(context)))
        heads = [masked_attention(q, k, v, mask) for q, k, v in zip(*pieces, strict=True)]
        return self.out_proj(torch.cat(heads, dim=-1))


@right_answer("CrossAttention")
class CrossFolded(nn.Module):
    """batch and heads folded together, bmm, an additive mask without -inf where all is hidden"""

    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{d_out} / {num_heads}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def fold(self, t):
        return torch.cat(t.chunk(self.num_heads, dim=-1), dim=0)

    def forward(self, x, context, context_mask=None):
        q, k, v = self.fold(self.W_query(x)), self.fold(self.W_key(context)), self.fold(self.W_value(context))
        scores = torch.bmm(q, k.transpose(1, 2)) * q.shape[-1] ** -0.5
        if context_mask is not None:
            scores = scores + torch.zeros_like(scores[: len(x), :1]).masked_fill(
                context_mask[:, None] & ~context_mask.all(1)[:, None, None], float("-inf")
            ).repeat(self.num_heads, 1, 1)
        weights = F.softmax(scores, dim=2)
        if context_mask is not None:
            weights = weights.masked_fill(context_mask.all(1).repeat(self.num_heads)[:, None, None], 0.0)
        return self.out_proj(torch.cat(torch.bmm(weights, v).chunk(self.num_heads, dim=0), dim=-1))

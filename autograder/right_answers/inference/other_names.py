"""Right answers that have a name of their own for every argument: it is by its place that a grader passes each."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("attention_flops")
def flops_in_other_names(sequences, tokens, width, heads):
    """other names for all arguments"""
    return sequences * (8 * tokens * width * width + 4 * tokens * tokens * width)


@right_answer("kv_cache_bytes")
def bytes_in_other_names(n, heads, width, places, size):
    """other names for all arguments"""
    return n * heads * width * places * size * 2


@right_answer("share_heads")
def shared_in_other_names(groups, heads):
    """other names for all arguments"""
    return groups.repeat_interleave(heads // len(groups[0]), 1)


@right_answer("CachedMultiHeadAttention")
class CachedInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_in, n_out, n_head):
        super().__init__()
        if n_out % n_head:
            raise ValueError("no whole number")
        self.n_head = n_head
        self.W_query, self.W_key = nn.Linear(n_in, n_out, bias=False), nn.Linear(n_in, n_out, bias=False)
        self.W_value, self.out_proj = nn.Linear(n_in, n_out, bias=False), nn.Linear(n_out, n_out)

    def forward(self, tokens, past=None):
        q, k, v = self.W_query(tokens), self.W_key(tokens), self.W_value(tokens)
        q, k, v = (t.unflatten(-1, (self.n_head, -1)).movedim(2, 1) for t in (q, k, v))
        if past:
            past.append(k, v)
            k, v = past.keys, past.values
        hidden = (q @ k.mT).new_ones(q.shape[2], k.shape[2]).triu(k.shape[2] - q.shape[2] + 1).bool()
        weights = torch.softmax((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf), -1)
        return self.out_proj((weights @ v).movedim(1, 2).flatten(2))


@right_answer("GroupedQueryAttention")
class GroupedInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_in, n_out, longest, n_head, n_group):
        super().__init__()
        if n_out % n_head or n_head % n_group:
            raise ValueError("no whole number")
        self.n_head, self.n_group, width = n_head, n_group, n_out // n_head
        self.W_query, self.W_key = nn.Linear(n_in, n_out, bias=False), nn.Linear(n_in, n_group * width, bias=False)
        self.W_value, self.out_proj = nn.Linear(n_in, n_group * width, bias=False), nn.Linear(n_out, n_out)

    def forward(self, tokens):
        q = self.W_query(tokens).unflatten(-1, (self.n_head, -1)).movedim(2, 1)
        k, v = (f(tokens).unflatten(-1, (self.n_group, -1)).movedim(2, 1) for f in (self.W_key, self.W_value))
        k, v = (one[:, torch.arange(self.n_head) * self.n_group // self.n_head] for one in (k, v))
        return self.out_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).movedim(1, 2).flatten(2))

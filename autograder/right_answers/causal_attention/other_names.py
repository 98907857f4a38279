"""Right answers that have a name of their own for every argument: it is by its place that a grader passes each."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer
from solutions.causal_attention import CausalAttention


@right_answer("causal_mask")
def mask_in_other_names(length):
    """other names for all arguments"""
    return torch.ones(length, length).triu(1).bool()


@right_answer("renormalized_causal_weights")
def renormalized_in_other_names(attn):
    """other names for all arguments"""
    past = attn.tril()
    return past / past.sum(-1, keepdim=True)


@right_answer("masked_scores")
def masked_in_other_names(attn, hidden):
    """other names for all arguments"""
    return torch.where(hidden, -torch.inf, attn)


@right_answer("causal_softmax")
def causal_in_other_names(attn, width):
    """other names for all arguments"""
    hidden = torch.ones_like(attn, dtype=torch.bool).triu(1)
    return torch.softmax(attn.masked_fill(hidden, -torch.inf) / width**0.5, -1)


@right_answer("attention_dropout")
def dropped_in_other_names(attn, rate, is_training=True):
    """other names for all arguments"""
    return F.dropout(attn, rate, is_training)


@right_answer("causal_head")
def head_in_other_names(q, k, v):
    """other names for all arguments"""
    attn = q @ k.mT / k.size(-1) ** 0.5
    return torch.softmax(attn.masked_fill(torch.ones_like(attn[0]).triu(1).bool(), -torch.inf), -1) @ v


@right_answer("CausalAttention")
class OneHeadInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_in, n_out, context_len, rate, use_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(n_in, n_out, use_bias) for _ in range(3))
        self.drop = nn.Dropout(rate)
        self.register_buffer("later", torch.ones(context_len, context_len).triu(1).bool())

    def forward(self, tokens):
        q, k, v = self.W_query(tokens), self.W_key(tokens), self.W_value(tokens)
        attn = (q @ k.mT).masked_fill(self.later[: k.size(1), : k.size(1)], -torch.inf)
        return self.drop(torch.softmax(attn / k.size(-1) ** 0.5, -1)) @ v


@right_answer("MultiHeadAttentionWrapper")
class HeadsInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_in, n_out, context_len, rate, n_head, use_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(n_in, n_out, context_len, rate, use_bias) for _ in range(n_head))

    def forward(self, tokens):
        return torch.cat([head(tokens) for head in self.heads], -1)

"""Right answers that have a name of their own for every argument: it is by its place that a grader passes each."""

import torch
from torch import nn

from autograder.catalogue import right_answer


@right_answer("stacked_heads_attention")
def stacked_in_other_names(x, wq, wk, wv):
    """other names for all arguments"""
    q, k, v = x @ wq.mT, x @ wk.mT, x @ wv.mT
    return torch.softmax(q @ k.mT / k.size(-1) ** 0.5, -1) @ v


@right_answer("split_heads")
def split_in_other_names(t, n_head):
    """other names for all arguments"""
    if t.size(-1) % n_head:
        raise ValueError("not divisible")
    return torch.stack(t.chunk(n_head, -1), 1)


@right_answer("multi_head_scores")
def scores_in_other_names(q, k):
    """other names for all arguments"""
    return torch.matmul(q, k.mT)


@right_answer("merge_heads")
def merged_in_other_names(t):
    """other names for all arguments"""
    return torch.cat([*t.transpose(0, 1)], -1)


@right_answer("MultiHeadAttention")
class ModuleInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_embd, n_out, context_len, rate, n_head, use_bias=False):
        super().__init__()
        assert n_out % n_head == 0
        self.n_head = n_head
        self.W_query, self.W_key, self.W_value = (nn.Linear(n_embd, n_out, use_bias) for _ in range(3))
        self.out_proj = nn.Linear(n_out, n_out)
        self.drop = nn.Dropout(rate)
        self.register_buffer("later", torch.ones(context_len, context_len).triu(1).bool())

    def forward(self, tokens):
        projected = self.W_query(tokens), self.W_key(tokens), self.W_value(tokens)
        q, k, v = (one.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for one in projected)
        attn = (q @ k.mT).masked_fill(self.later[: k.size(2), : k.size(2)], -torch.inf)
        attn = self.drop(torch.softmax(attn / k.size(-1) ** 0.5, -1))
        return self.out_proj((attn @ v).transpose(1, 2).flatten(2))


@right_answer("OptimizedMultiHeadAttention")
class OptimizedInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_embd, n_out, context_len, rate, n_head, use_bias=False):
        super().__init__()
        assert n_out % n_head == 0
        self.n_head = n_head
        self.W_query, self.W_key = (nn.Linear(n_embd, n_out, use_bias) for _ in range(2))
        self.out_proj = nn.Linear(n_out, n_out)
        self.drop = nn.Dropout(rate)
        self.register_buffer("later", torch.ones(context_len, context_len).triu(1).bool())

    def forward(self, tokens):
        projected = self.W_query(tokens), self.W_key(tokens), tokens
        q, k, v = (one.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for one in projected)
        attn = (q @ k.mT).masked_fill(self.later[: k.size(2), : k.size(2)], -torch.inf)
        attn = self.drop(torch.softmax(attn / k.size(-1) ** 0.5, -1))
        return self.out_proj((attn @ v).transpose(1, 2).flatten(2))


@right_answer("EfficientMultiHeadAttention")
class EfficientInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_embd, n_out, context_len, rate, n_head, use_bias=False):
        super().__init__()
        assert n_out % n_head == 0
        self.n_head = n_head
        self.W_query = nn.Linear(n_embd, n_out, use_bias)
        self.out_proj = nn.Linear(n_out, n_out)
        self.drop = nn.Dropout(rate)
        self.register_buffer("later", torch.ones(context_len, context_len).triu(1).bool())

    def forward(self, tokens):
        projected = self.W_query(tokens), tokens, tokens
        q, k, v = (one.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for one in projected)
        attn = (q @ k.mT).masked_fill(self.later[: k.size(2), : k.size(2)], -torch.inf)
        attn = self.drop(torch.softmax(attn / k.size(-1) ** 0.5, -1))
        return self.out_proj((attn @ v).transpose(1, 2).flatten(2))


@right_answer("count_parameters")
def counted_in_other_names(model):
    """other names for all arguments"""
    return sum(map(torch.Tensor.numel, filter(lambda one: one.requires_grad, model.parameters())))

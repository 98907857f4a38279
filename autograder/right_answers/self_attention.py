"""Unit 2: right answers to self-attention with trainable weights, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from ..catalogue import right_answer

# --- attention_scores ---


@right_answer("attention_scores")
def einsum_scores(queries, keys):
    """einsum"""
    return torch.einsum("...qd,...kd->...qk", queries, keys)


@right_answer("attention_scores")
def matmul_with_mt(queries, keys):
    """matmul and `.mT`"""
    return torch.matmul(queries, keys.mT)


@right_answer("attention_scores")
def broadcast_products(queries, keys):
    """elementwise products, summed over the width"""
    return (queries.unsqueeze(-2) * keys.unsqueeze(-3)).sum(dim=-1)


@right_answer("attention_scores")
def loop_over_the_keys(queries, keys):
    """a loop with one column of scores for each key"""
    columns = []
    for i in range(keys.shape[-2]):
        columns.append((queries * keys[..., i : i + 1, :]).sum(-1))
    return torch.stack(columns, dim=-1)


@right_answer("attention_scores")
def linear_scores(queries, keys):
    """F.linear in 2-D, bmm after flattening the leading dimensions"""
    if keys.dim() == 2:
        return F.linear(queries, keys)
    flat = torch.bmm(queries.flatten(0, -3), keys.flatten(0, -3).transpose(1, 2))
    return flat.view(*queries.shape[:-1], keys.shape[-2])


@right_answer("attention_scores")
def scores_in_float64(queries, keys):
    """float64 inside, the inputs' dtype outside"""
    return (queries.double() @ keys.double().transpose(-1, -2)).to(queries.dtype)


# --- scaled_softmax ---


@right_answer("scaled_softmax")
def functional_softmax(scores, d_k):
    """F.softmax and math.sqrt"""
    return F.softmax(scores / math.sqrt(d_k), dim=-1)


@right_answer("scaled_softmax")
def softmax_by_hand(scores, d_k):
    """exp and sum after subtracting each row's maximum"""
    scaled = scores * d_k**-0.5
    exponentials = torch.exp(scaled - scaled.max(dim=-1, keepdim=True).values)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@right_answer("scaled_softmax")
def root_as_a_tensor(scores, d_k):
    """torch.sqrt of a 0-d tensor, the tensor's own softmax method"""
    return (scores / torch.sqrt(torch.tensor(d_k))).softmax(-1)


@right_answer("scaled_softmax")
def exp_of_log_softmax(scores, d_k):
    """exp of log_softmax"""
    return torch.exp(F.log_softmax(scores / d_k**0.5, dim=-1))


@right_answer("scaled_softmax")
def minus_logsumexp(scores, d_k):
    """logsumexp over the last dimension, counted from the front"""
    scaled = scores / d_k**0.5
    return torch.exp(scaled - torch.logsumexp(scaled, dim=scaled.dim() - 1, keepdim=True))


@right_answer("scaled_softmax")
def softmax_module(scores, d_k):
    """an nn.Softmax module on a scaled copy"""
    scaled = scores.clone()
    scaled /= d_k**0.5
    return nn.Softmax(dim=-1)(scaled)


# --- SelfAttention_v1 ---


@right_answer("SelfAttention_v1")
class ScaledQueries(nn.Module):
    """the queries are scaled instead of the scores"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.scale = 1.0 / math.sqrt(d_out)

    def forward(self, x):
        queries = torch.matmul(x, self.W_query) * self.scale
        weights = F.softmax(torch.mm(queries, torch.mm(x, self.W_key).t()), dim=1)
        return torch.mm(weights, torch.mm(x, self.W_value))


@right_answer("SelfAttention_v1")
class LibraryAttention(nn.Module):
    """F.scaled_dot_product_attention, which the classes may call"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3))

    def forward(self, x):
        return F.scaled_dot_product_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


@right_answer("SelfAttention_v1")
class FusedProjection(nn.Module):
    """one product for queries, keys and values; parameters registered by name"""

    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x):
        fused = x @ torch.cat([self.W_query, self.W_key, self.W_value], dim=1)
        queries, keys, values = fused.chunk(3, dim=-1)
        scores = torch.einsum("qd,kd->qk", queries, keys)
        return torch.einsum("qk,kd->qd", (scores / keys.size(1) ** 0.5).softmax(dim=-1), values)


@right_answer("SelfAttention_v1")
class TokenByToken(nn.Module):
    """one query at a time"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def attend(self, query, keys, values):
        scores = keys @ query / torch.tensor(self.d_out).sqrt()
        return torch.softmax(scores, dim=0) @ values

    def forward(self, x):
        keys, values = x @ self.W_key, x @ self.W_value
        return torch.stack([self.attend(token @ self.W_query, keys, values) for token in x])


@right_answer("SelfAttention_v1")
class ParametersThroughFunctions(nn.Module):
    """requires_grad_() on the parameters, bmm with a batch of one"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1)).requires_grad_()
        self.W_key = nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1))
        self.W_value = nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1))

    def forward(self, x):
        queries, keys, values = ((x @ w).unsqueeze(0) for w in (self.W_query, self.W_key, self.W_value))
        weights = torch.softmax(torch.bmm(queries, keys.transpose(1, 2)) / keys.shape[2] ** 0.5, dim=2)
        return torch.bmm(weights, values).squeeze(0)

"""Right answers to `causal_head`, as different students write them."""

import math

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("causal_head")
def einsum_head(queries, keys, values):
    """einsum, queries scaled first"""
    T = queries.shape[1]
    scores = torch.einsum("bqd,bkd->bqk", queries * queries.shape[-1] ** -0.5, keys)
    i = torch.arange(T, device=queries.device)
    weights = scores.masked_fill(i > i.view(-1, 1), float("-inf")).softmax(-1)
    return torch.einsum("bqk,bkd->bqd", weights, values)


@right_answer("causal_head")
def bmm_head(queries, keys, values):
    """bmm, tril of ones"""
    _, T, head_dim = queries.shape
    weights = torch.bmm(queries, keys.transpose(1, 2)) * head_dim**-0.5
    tril = torch.tril(torch.ones(T, T, device=queries.device))
    return torch.bmm(F.softmax(weights.masked_fill(tril == 0, float("-inf")), dim=-1), values)


@right_answer("causal_head")
def baddbmm_head(queries, keys, values):
    """baddbmm with an additive mask"""
    T, head_dim = queries.shape[-2:]
    mask = torch.triu(queries.new_full((T, T), -torch.inf), diagonal=1).expand(len(queries), -1, -1)
    return torch.baddbmm(mask, queries, keys.mT, alpha=1 / math.sqrt(head_dim)).softmax(dim=2) @ values


@right_answer("causal_head")
def one_token_at_a_time(queries, keys, values):
    """each token with the keys up to its own"""
    contexts = []
    for i in range(queries.shape[1]):
        scores = (queries[:, i : i + 1] * keys[:, : i + 1]).sum(-1) / queries.shape[-1] ** 0.5
        contexts.append((scores.softmax(-1).unsqueeze(-1) * values[:, : i + 1]).sum(1))
    return torch.stack(contexts, dim=1)


@right_answer("causal_head")
def one_sequence_at_a_time(queries, keys, values):
    """a loop over the batch"""
    future = torch.ones(queries.shape[1], queries.shape[1], dtype=torch.bool, device=queries.device).triu(1)
    results = []
    for q, k, v in zip(queries, keys, values, strict=True):
        results.append(torch.softmax((q @ k.T).masked_fill_(future, -torch.inf) / q.shape[-1] ** 0.5, dim=1) @ v)
    return torch.stack(results)

"""Right answers to `multi_head_scores`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("multi_head_scores")
def head_scores_by_einsum(queries, keys):
    """einsum"""
    return torch.einsum("bhqd,bhkd->bhqk", queries, keys)


@right_answer("multi_head_scores")
def head_scores_by_bmm(queries, keys):
    """bmm over batch and heads together"""
    b, h, num_tokens, head_dim = queries.shape
    flat = torch.bmm(queries.reshape(b * h, num_tokens, head_dim), keys.reshape(b * h, num_tokens, head_dim).mT)
    return flat.view(b, h, num_tokens, num_tokens)


@right_answer("multi_head_scores")
def head_scores_by_baddbmm(queries, keys):
    """baddbmm with beta = 0"""
    q, k = queries.flatten(0, 1), keys.flatten(0, 1)
    scores = torch.baddbmm(q.new_zeros(len(q), q.shape[1], k.shape[1]), q, k.permute(0, 2, 1), beta=0)
    return scores.unflatten(0, queries.shape[:2])


@right_answer("multi_head_scores")
def head_scores_in_loops(queries, keys):
    """a loop over batch and heads"""
    rows = [[q @ k.T for q, k in zip(qs, ks, strict=True)] for qs, ks in zip(queries, keys, strict=True)]
    return torch.stack([torch.stack(row) for row in rows])


@right_answer("multi_head_scores")
def head_scores_by_products(queries, keys):
    """elementwise products, summed over the width"""
    return queries.unsqueeze(3).mul(keys.unsqueeze(2)).sum(-1)

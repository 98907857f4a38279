"""Right answers to `attention_scores`, as different students write them."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


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

"""Right answers to `scaled_dot_product_attention`, as different students write them."""

import math

import torch

from autograder.catalogue import right_answer


@right_answer("scaled_dot_product_attention")
def einsum_attention(queries, keys, values):
    """einsum, queries scaled first"""
    scores = torch.einsum("...qd,...kd->...qk", queries * queries.shape[-1] ** -0.5, keys)
    return torch.einsum("...qk,...kv->...qv", scores.softmax(-1), values)


@right_answer("scaled_dot_product_attention")
def bmm_attention(queries, keys, values):
    """bmm after flattening the leading dimensions, softmax by hand"""
    leading = queries.shape[:-2]
    q, k, v = (t.reshape(-1, *t.shape[-2:]) for t in (queries, keys, values))
    scores = torch.bmm(q, k.transpose(1, 2)).div(math.sqrt(k.shape[-1]))
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return torch.bmm(weights / weights.sum(-1, keepdim=True), v).view(*leading, q.shape[1], v.shape[2])


@right_answer("scaled_dot_product_attention")
def attention_in_float64(queries, keys, values):
    """float64 inside"""
    q, k, v = queries.double(), keys.double(), values.double()
    return (torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1) @ v).type_as(queries)

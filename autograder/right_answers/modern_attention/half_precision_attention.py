"""Alternative solutions of `half_precision_attention`."""

import math

import torch

from autograder.catalogue import right_answer


@right_answer("half_precision_attention")
def half_by_einsum(queries, keys, values):
    """einsum, queries scaled first, `.float()` for the two half precisions"""
    q, k, v = queries, keys, values
    if queries.dtype in (torch.float16, torch.bfloat16):
        q, k, v = q.float(), k.float(), v.float()
    scores = torch.einsum("...qd,...kd->...qk", q / math.sqrt(q.shape[-1]), k)
    return torch.einsum("...qk,...kv->...qv", scores.softmax(dim=-1), v).to(queries.dtype)


@right_answer("half_precision_attention")
def half_by_logsumexp(queries, keys, values):
    """exponentials of the scores minus their logsumexp"""
    wide = torch.float64 if queries.dtype == torch.float64 else torch.float32
    scores = torch.matmul(queries.to(wide), keys.to(wide).transpose(-2, -1)) * queries.size(-1) ** -0.5
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return torch.matmul(weights, values.to(wide)).type_as(queries)


@right_answer("half_precision_attention")
def half_in_float64(queries, keys, values):
    """float64 inside, whatever the dtype"""
    q, k, v = (x.double() for x in (queries, keys, values))
    return (torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1) @ v).to(values.dtype)


@right_answer("half_precision_attention")
def half_divided_last(queries, keys, values):
    """a softmax by hand, whose sum divides the result, and a scale shared by queries and keys"""
    dtype = queries.dtype
    q, k, v = (x.float() if x.dtype.itemsize == 2 else x for x in (queries, keys, values))
    root = q.shape[-1] ** 0.25
    scores = (q / root) @ (k / root).mT
    powers = (scores - scores.max(dim=-1, keepdim=True).values).exp()
    return ((powers @ v) / powers.sum(dim=-1, keepdim=True)).to(dtype)

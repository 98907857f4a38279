"""Right answers to `masked_attention`, as different students write them."""

import math

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("masked_attention")
def mended_weights(queries, keys, values, mask):
    """-inf by masked_fill, the NaN of a hidden row replaced right after the softmax"""
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    weights = F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
    return torch.nan_to_num(weights) @ values


@right_answer("masked_attention")
def lowest_number(queries, keys, values, mask):
    """the dtype's lowest number in place of -inf, hidden weights zero afterwards"""
    scores = torch.matmul(queries / queries.shape[-1] ** 0.5, keys.transpose(-1, -2))
    scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(mask, 0) @ values


@right_answer("masked_attention")
def chosen_by_where(queries, keys, values, mask):
    """torch.where throughout, any() of what is seen"""
    seen = torch.logical_not(mask)
    sees_some = seen.any(dim=-1, keepdim=True)
    scores = torch.where(seen, queries @ keys.mT * keys.size(-1) ** -0.5, -torch.inf)
    weights = torch.where(sees_some, torch.where(sees_some, scores, 0.0).softmax(-1), 0.0)
    return weights @ values


@right_answer("masked_attention")
def masked_by_einsum(queries, keys, values, mask):
    """einsum, a mask that opens hidden rows, the result zeroed"""
    scores = torch.einsum("...qd,...kd->...qk", queries, keys) / keys.shape[-1] ** 0.5
    blind = mask.all(-1, keepdim=True)
    weights = scores.masked_fill(mask & ~blind, -math.inf).softmax(dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, values).masked_fill(blind, 0.0)


@right_answer("masked_attention")
def exponentials_by_hand(queries, keys, values, mask):
    """the largest seen score subtracted, sums of seen exponentials, those of nothing made 1"""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
    largest = scores.amax(dim=-1, keepdim=True).detach()
    powers = (scores - largest).exp() * ~mask
    total = powers.sum(dim=-1, keepdim=True)
    return powers @ values / torch.where(total == 0, torch.ones_like(total), total)


@right_answer("masked_attention")
def minus_a_billion(queries, keys, values, mask):
    """-1e9 for hidden scores, weights times what is seen"""
    scores = queries @ keys.mT / keys.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(mask, -1e9), dim=-1)
    return (weights * ~mask) @ values


@right_answer("masked_attention")
def added_bias(queries, keys, values, mask):
    """a bias of 0 and -inf that is added, without -inf in rows that are hidden whole"""
    scores = queries @ keys.mT / keys.shape[-1] ** 0.5
    nothing_seen = mask.all(dim=-1, keepdim=True)
    bias = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(mask & ~nothing_seen, -torch.inf)
    return ((scores + bias).softmax(dim=-1) * (1 - nothing_seen.to(scores.dtype))) @ values


@right_answer("masked_attention")
def query_by_query(queries, keys, values, mask):
    """a loop over the queries, with the keys that each sees"""
    mask = mask.expand(*queries.shape[:-1], keys.shape[-2])
    q, hidden = queries.flatten(0, -3) if queries.dim() > 2 else queries[None], mask.reshape(-1, *mask.shape[-2:])
    k, v = keys.reshape(len(q), *keys.shape[-2:]), values.reshape(len(q), *values.shape[-2:])
    rows = []
    for n in range(len(q)):
        for i in range(q.shape[1]):
            seen = ~hidden[n, i]
            weights = torch.softmax(k[n][seen] @ q[n, i] / k.shape[-1] ** 0.5, dim=0)
            rows.append(weights @ v[n][seen])
    return torch.stack(rows).reshape(*queries.shape[:-1], values.shape[-1])


@right_answer("masked_attention")
def an_extra_key(queries, keys, values, mask):
    """a key of nothing, which hidden rows attend to"""
    scores = queries @ keys.mT / keys.shape[-1] ** 0.5
    blind = mask.all(dim=-1, keepdim=True)
    spare = torch.full_like(scores[..., :1], -torch.inf).masked_fill(blind, 0.0)
    scores = torch.cat([scores.masked_fill(mask, -torch.inf), spare], dim=-1)
    return torch.softmax(scores, dim=-1)[..., :-1] @ values

"""Right answers to `causal_softmax`, as different students write them."""

import math

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("causal_softmax")
def additive_mask(scores, d_k):
    """-inf added above the diagonal, math.sqrt"""
    T = scores.size(-1)
    mask = torch.full((T, T), float("-inf"), device=scores.device, dtype=scores.dtype).triu(1)
    return F.softmax(scores / math.sqrt(d_k) + mask, dim=-1)


@right_answer("causal_softmax")
def smallest_number(scores, d_k):
    """the dtype's smallest number in the place of -inf, after scaling"""
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
    return (scores * d_k**-0.5).masked_fill(future, torch.finfo(scores.dtype).min).softmax(-1)


@right_answer("causal_softmax")
def positions_and_where(scores, d_k):
    """positions compared, torch.where"""
    i = torch.arange(scores.shape[-1], device=scores.device)
    return torch.softmax(torch.where(i[None, :] <= i[:, None], scores / d_k**0.5, -torch.inf), dim=-1)


@right_answer("causal_softmax")
def exponentials_of_the_visible(scores, d_k):
    """exp and sum by hand, the maximum of the visible scores subtracted"""
    visible = torch.ones_like(scores).tril().bool()
    scaled = (scores / d_k**0.5).masked_fill(~visible, float("-inf"))
    exponentials = (scaled - scaled.amax(dim=-1, keepdim=True).detach()).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@right_answer("causal_softmax")
def a_row_at_a_time(scores, d_k):
    """softmax of each row's visible part, padded with zeros"""
    T = scores.shape[-1]
    rows = []
    for i in range(T):
        share = torch.softmax(scores[..., i, : i + 1] / d_k**0.5, dim=-1)
        rows.append(torch.cat([share, share.new_zeros(*share.shape[:-1], T - i - 1)], dim=-1))
    return torch.stack(rows, dim=-2)


@right_answer("causal_softmax")
def minus_a_billion(scores, d_k):
    """-1e9 in the place of -inf, a float mask"""
    tril = torch.tril(torch.ones(scores.shape[-2:])).to(scores)
    return torch.softmax(scores.masked_fill(tril == 0, -1e9) / d_k**0.5, dim=-1)


@right_answer("causal_softmax")
def softmax_in_float64(scores, d_k):
    """float64 inside"""
    wide = scores.double() / d_k**0.5
    wide = wide.masked_fill(torch.ones_like(wide).triu(1).bool(), float("-inf"))
    return wide.softmax(dim=-1).to(scores.dtype)

"""Right answers to `renormalized_causal_weights`, as different students write them."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("renormalized_causal_weights")
def multiplied_with_a_triangle(weights):
    """a triangle of ones, multiplied"""
    masked = weights * torch.tril(torch.ones_like(weights))
    return masked / masked.sum(-1).unsqueeze(-1)


@right_answer("renormalized_causal_weights")
def normalized_by_functional(weights):
    """F.normalize with the 1-norm"""
    return F.normalize(weights.tril(), p=1.0, dim=-1)


@right_answer("renormalized_causal_weights")
def filled_with_zero(weights):
    """masked_fill with zero"""
    T = weights.size(0)
    future = torch.triu(torch.ones(T, T, device=weights.device), diagonal=1) == 1
    masked = weights.masked_fill(future, 0)
    return torch.div(masked, masked.sum(dim=1, keepdim=True))


@right_answer("renormalized_causal_weights")
def divided_by_the_diagonal_of_cumulative_sums(weights):
    """cumulative sums, whose diagonal is each row's kept sum"""
    sums = weights.cumsum(dim=-1).diagonal()
    return torch.tril(weights) / sums[:, None]


@right_answer("renormalized_causal_weights")
def row_by_row(weights):
    """one row at a time"""
    rows = []
    for i in range(weights.shape[0]):
        kept = weights[i, : i + 1]
        rows.append(F.pad(kept / kept.sum(), (0, weights.shape[1] - i - 1)))
    return torch.stack(rows)


@right_answer("renormalized_causal_weights")
def softmax_of_logarithms(weights):
    """the masked softmax of the weights' logarithms"""
    future = torch.ones_like(weights).triu(diagonal=1).bool()
    return torch.softmax(weights.log().masked_fill(future, -torch.inf), dim=-1)

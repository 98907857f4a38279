"""Right answers to `masked_scores`, as different students write them."""

import math

import torch

from autograder.catalogue import right_answer


@right_answer("masked_scores")
def chosen_with_where(scores, mask):
    """torch.where with a 0-d tensor"""
    return torch.where(mask, torch.tensor(-torch.inf, dtype=scores.dtype, device=scores.device), scores)


@right_answer("masked_scores")
def copied_then_filled(scores, mask):
    """masked_fill_ on a copy"""
    result = scores.clone()
    result.masked_fill_(mask, -math.inf)
    return result


@right_answer("masked_scores")
def minus_infinity_added(scores, mask):
    """an additive mask of 0 and -inf"""
    return scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill(mask, float("-inf"))


@right_answer("masked_scores")
def indexed_from_the_end(scores, mask):
    """assignment to a copy, with the mask as the last index"""
    result = scores.clone()
    result[..., mask] = -torch.inf
    return result

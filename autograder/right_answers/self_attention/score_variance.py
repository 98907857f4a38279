"""Right answers to `score_variance`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("score_variance")
def variance_by_hand(queries, keys):
    """the unbiased variance written out"""

    def variance(t):
        return ((t - t.mean()) ** 2).sum() / (t.numel() - 1)

    scores = queries.matmul(keys.mT)
    return variance(scores), variance(scores * keys.shape[-1] ** -0.5)


@right_answer("score_variance")
def variance_divided_by_d_k(queries, keys):
    """the raw variance divided by d_k"""
    raw = torch.var(torch.einsum("...qd,...kd->...qk", queries, keys))
    return raw, raw / keys.shape[-1]

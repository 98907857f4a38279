"""Right answers to `pairwise_scores`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("pairwise_scores")
def two_loops(inputs):
    """two loops of dot products"""
    return torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs])


@right_answer("pairwise_scores")
def einsum_pairs(inputs):
    """einsum"""
    return torch.einsum("id,jd->ij", inputs, inputs)

"""What goes wrong in `normalize_by_sum`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception


@misconception("normalize_by_sum", kind="value", caught_by="test_leading_dimensions")
def divided_by_the_sum_of_everything(scores):
    """Everything is divided by the sum of the whole tensor; each row should sum to 1: sum over dim=-1, keepdim=True."""
    return scores / scores.sum()


@misconception("normalize_by_sum", kind="value", caught_by="test_leading_dimensions")
def sum_without_keepdim(scores):
    """The sum loses its dimension, so it meets the wrong numbers in a matrix; pass keepdim=True."""
    return scores / scores.sum(dim=-1)


@misconception("normalize_by_sum", kind="value", caught_by="test_leading_dimensions")
def summed_over_dim_0(scores):
    """The sum runs over dim=0, which is the last dimension of a vector only; use dim=-1."""
    return scores / scores.sum(dim=0, keepdim=True)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def softmax_instead_of_a_sum(scores):
    """This is a softmax; here the scores are divided by their plain sum, without exponentials."""
    return torch.softmax(scores, dim=-1)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def divided_by_the_norm(scores):
    """The scores are divided by their length (the root of the sum of squares); divide by their sum."""
    return F.normalize(scores, dim=-1)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def divided_by_the_maximum(scores):
    """The scores are divided by their maximum; divide by their sum."""
    return scores / scores.max(dim=-1, keepdim=True).values


@misconception("normalize_by_sum", kind="value", caught_by="test_negative_scores")
def divided_by_absolute_values(scores):
    """The scores are divided by the sum of their absolute values; divide by the plain sum."""
    return scores / scores.abs().sum(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="side effect", caught_by="test_inputs_are_unchanged")
def normalised_in_place(scores):
    """`/=` writes into the caller's scores; make a new tensor with `scores / ...`."""
    scores /= scores.sum(dim=-1, keepdim=True)
    return scores

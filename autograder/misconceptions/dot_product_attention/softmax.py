"""What goes wrong in `softmax`."""

import torch

from ...catalogue import FORBIDDEN, misconception


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def naive_exponentials(scores, dim=-1):
    """exp overflows for large scores: subtract the maximum along dim first, which leaves the weights as they are."""
    exponentials = torch.exp(scores)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def always_the_last_dimension(scores, dim=-1):
    """The argument dim is ignored: maximum and sum always run over the last dimension."""
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def sum_over_everything(scores, dim=-1):
    """The sum runs over the whole tensor; along dim alone, with keepdim=True, each slice sums to 1."""
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum()


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def softmax_without_keepdim(scores, dim=-1):
    """The sum loses its dimension, so it meets the wrong numbers in a matrix; pass keepdim=True."""
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum(dim=dim)


@misconception("softmax", kind="value", caught_by="test_rows_far_apart")
def maximum_of_everything(scores, dim=-1):
    """The maximum of the whole tensor is subtracted: rows far below it underflow to 0/0. Take it along dim."""
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def scores_clamped(scores, dim=-1):
    """Large scores are cut off (clamp), which changes their weights; subtract the maximum, which does not."""
    exponentials = torch.exp(scores.clamp(-50, 50))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_six_words")
def powers_of_two(scores, dim=-1):
    """Powers of 2 are taken; softmax takes powers of e: torch.exp."""
    exponentials = torch.pow(2, scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_six_words")
def no_exponentials(scores, dim=-1):
    """The scores are divided by their sum without exponentials; softmax takes exp of each score first."""
    return scores / scores.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="contract", caught_by=FORBIDDEN)
def library_softmax(scores, dim=-1):
    """This calls a library softmax; the exercise is to write it from exp and a sum."""
    return torch.softmax(scores, dim=dim)


@misconception("softmax", kind="dtype", caught_by="test_dtypes")
def softmax_always_in_float32(scores, dim=-1):
    """The result is always float32; a softmax keeps its input's dtype."""
    exponentials = torch.exp(scores.float() - scores.float().amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="side effect", caught_by="test_inputs_are_unchanged")
def maximum_subtracted_in_place(scores, dim=-1):
    """`-=` writes into the caller's scores; make a new tensor with `scores - ...`."""
    scores -= scores.amax(dim=dim, keepdim=True).clone()
    return scores.exp() / scores.exp().sum(dim=dim, keepdim=True)

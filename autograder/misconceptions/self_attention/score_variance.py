"""What goes wrong in `score_variance`."""

import torch

from ...catalogue import misconception


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def biased_variance(queries, keys):
    """This is the biased variance (divided by n); `Tensor.var()` as it is divides by n - 1."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(unbiased=False), (scores / keys.shape[-1] ** 0.5).var(unbiased=False)


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def standard_deviations(queries, keys):
    """These are standard deviations; the variance is their square: `Tensor.var()`."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.std(), (scores / keys.shape[-1] ** 0.5).std()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_of_scores_over_d_k(queries, keys):
    """The scores are divided by d_k; divide by its square root."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), (scores / keys.shape[-1]).var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_divided_by_the_root(queries, keys):
    """The variance is divided by sqrt(d_k); dividing the scores by it divides their variance by d_k."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), scores.var() / keys.shape[-1] ** 0.5


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_a_row(queries, keys):
    """The variance is taken along the last dimension; take it over all scores together."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(dim=-1), (scores / keys.shape[-1] ** 0.5).var(dim=-1)


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def scaled_variance_first(queries, keys):
    """The two results are exchanged; return the raw variance first, then the scaled one."""
    scores = queries @ keys.transpose(-2, -1)
    return (scores / keys.shape[-1] ** 0.5).var(), scores.var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_as_numbers(queries, keys):
    """The results are Python numbers (`.item()`); return the 0-d tensors."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var().item(), (scores / keys.shape[-1] ** 0.5).var().item()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_of_the_weights(queries, keys):
    """A softmax is applied; it is the scores whose variance is asked for."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1).var()

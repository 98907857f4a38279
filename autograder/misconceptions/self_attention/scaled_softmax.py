"""What goes wrong in `scaled_softmax`."""

import torch

from ...catalogue import misconception


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def divided_by_d_k(scores, d_k):
    """The scores are divided by d_k; divide by its square root, so that their variance stays near 1."""
    return torch.softmax(scores / d_k, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def not_scaled(scores, d_k):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    return torch.softmax(scores, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def multiplied_by_the_root(scores, d_k):
    """The scores are multiplied by the square root of d_k; divide by it."""
    return torch.softmax(scores * d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def scaled_by_the_number_of_tokens(scores, d_k):
    """The scores are scaled by the number of tokens, their last dimension; scale by d_k, the width of a key."""
    return torch.softmax(scores / scores.shape[-1] ** 0.5, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def scaled_after_softmax(scores, d_k):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    return torch.softmax(scores, dim=-1) / d_k**0.5


@misconception("scaled_softmax", kind="value", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_the_queries(scores, d_k):
    """The softmax runs over the queries (dim=-2), so the columns sum to 1; over the keys, dim=-1, the rows do."""
    return torch.softmax(scores / d_k**0.5, dim=-2)


@misconception("scaled_softmax", kind="value", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_dim_0(scores, d_k):
    """The softmax runs over dim=0, the first dimension; the keys are the last one, dim=-1."""
    return torch.softmax(scores / d_k**0.5, dim=0)


@misconception("scaled_softmax", kind="value", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_dim_1(scores, d_k):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    return torch.softmax(scores / d_k**0.5, dim=1)


@misconception("scaled_softmax", kind="value", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_everything(scores, d_k):
    """The softmax runs over the whole tensor; each row should sum to 1 on its own, so use dim=-1."""
    return torch.softmax((scores / d_k**0.5).flatten(), dim=0).view_as(scores)


@misconception("scaled_softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def exponentials_overflow(scores, d_k):
    """exp overflows for large scores: subtract each row's maximum first (the weights stay the same), or use softmax."""
    exponentials = torch.exp(scores / d_k**0.5)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def sum_without_exponentials(scores, d_k):
    """The scores are divided by their sum without exponentials; softmax takes exp of every score first."""
    scaled = scores / d_k**0.5
    return scaled / scaled.sum(dim=-1, keepdim=True)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def log_weights(scores, d_k):
    """This is the logarithm of the weights (log_softmax); attention needs the weights themselves."""
    return torch.log_softmax(scores / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="side effect", caught_by="test_inputs_are_unchanged")
def scores_changed_in_place(scores, d_k):
    """The caller's scores are changed in place (`/=`, `-=`, a method ending in `_`); compute a new tensor instead."""
    scores /= d_k**0.5
    return torch.softmax(scores, dim=-1)


@misconception("scaled_softmax", kind="gradient", caught_by="test_gradients_reach_the_scores")
def weights_detached(scores, d_k):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    return torch.softmax(scores / d_k**0.5, dim=-1).detach()


@misconception("scaled_softmax", kind="dtype", caught_by="test_float64_stays_exact")
def weights_in_float32(scores, d_k):
    """The scores are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    return torch.softmax(scores.float() / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="dtype", caught_by="test_dtype_is_kept")
def weights_in_float64(scores, d_k):
    """The weights are float64 whatever the scores are; keep the scores' dtype."""
    return torch.softmax(scores / d_k**0.5, dim=-1, dtype=torch.float64)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def root_rounded_down(scores, d_k):
    """The square root of d_k is rounded to an integer; divide by `d_k ** 0.5` as it is."""
    return torch.softmax(scores / int(d_k**0.5), dim=-1)

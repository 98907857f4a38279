"""What goes wrong in `attention_dropout`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def kept_weights_not_rescaled(weights, p, training=True):
    """The kept weights are as they were; divide them by 1 - p, so that the expected sum of a row stays as it was."""
    return weights * (torch.rand_like(weights) >= p) if training else weights


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def kept_weights_divided_by_p(weights, p, training=True):
    """The kept weights are divided by p; divide them by 1 - p, the probability that a weight is kept."""
    return weights * (torch.rand_like(weights) >= p) / p if training else weights


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def kept_weights_multiplied(weights, p, training=True):
    """The kept weights are multiplied by 1 - p; divide them by it, so that a row's expected sum stays as it was."""
    return weights * (torch.rand_like(weights) >= p) * (1 - p) if training else weights


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def kept_with_probability_p(weights, p, training=True):
    """Weights are kept with probability p; p is the probability that a weight is dropped."""
    return weights * (torch.rand_like(weights) < p) / (1 - p) if training else weights


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def p_and_its_complement_exchanged(weights, p, training=True):
    """p and 1 - p are exchanged everywhere: weights are kept with probability p and divided by p."""
    return weights * (torch.rand_like(weights) < p) / p if training else weights


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def nothing_ever_dropped(weights, p, training=True):
    """With `training` left at its default, True, nothing is dropped; each weight is to be zero with probability p."""
    return weights.clone()


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def rescaled_and_not_dropped(weights, p, training=True):
    """The weights are divided by 1 - p, but none is dropped; set each to zero with probability p first."""
    return weights / (1 - p) if training else weights


@misconception("attention_dropout", kind="dropout", caught_by="test_outside_of_training")
def dropped_outside_of_training(weights, p, training=True):
    """Weights are dropped with training=False too; hand `training` on, or return the weights as they are."""
    return F.dropout(weights, p)


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def dropped_only_outside_of_training(weights, p, training=True):
    """Weights are dropped with training=False and kept with training=True; it is the other way round."""
    return F.dropout(weights, p, training=not training)


@misconception("attention_dropout", kind="dropout", caught_by="test_outside_of_training_for_any_p")
def rescaled_outside_of_training(weights, p, training=True):
    """Rescaling is put off: weights are multiplied by 1 - p outside of training; divide the kept ones in training."""
    return weights * (torch.rand_like(weights) >= p) if training else weights * (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_outside_of_training")
def divided_outside_of_training(weights, p, training=True):
    """The weights are divided by 1 - p outside of training too; there they stay as they are."""
    return F.dropout(weights, p, training=training) / (1 if training else 1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_each_on_its_own")
def same_keys_dropped_for_every_query(weights, p, training=True):
    """One draw for the keys serves all queries, so whole columns are dropped; draw for each weight: rand_like."""
    if not training:
        return weights
    return weights * (torch.rand_like(weights[..., :1, :]) >= p) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_each_on_its_own")
def diagonal_spared(weights, p, training=True):
    """The diagonal is spared, so that no row is left empty; every weight may be dropped, and a row may be empty."""
    if not training:
        return weights
    spared = torch.eye(*weights.shape[-2:], dtype=torch.bool, device=weights.device)
    return weights * ((torch.rand_like(weights) >= p) | spared) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_each_on_its_own")
def no_row_left_empty(weights, p, training=True):
    """A row of which every weight would be dropped is kept; each weight is dropped whatever becomes of the others."""
    if not training:
        return weights
    kept = torch.rand_like(weights) >= p
    return weights * (kept | ~kept.any(dim=-1, keepdim=True)) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_each_on_its_own")
def number_counted_out_in_each_row(weights, p, training=True):
    """In each row the same number of weights is dropped, p of them; draw for each weight on its own, with rand_like."""
    if not training:
        return weights
    places = torch.rand_like(weights).argsort(dim=-1)
    return weights * (places >= int(p * weights.shape[-1])) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_each_on_its_own")
def whole_rows_dropped(weights, p, training=True):
    """One draw for each query drops whole rows, all of its weights; draw for each weight: rand_like."""
    if not training:
        return weights
    return weights * (torch.rand_like(weights[..., :1]) >= p) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_each_on_its_own")
def same_drop_for_every_sequence(weights, p, training=True):
    """One draw serves all sequences of a batch; draw for each weight of each of them: rand_like(weights)."""
    if not training:
        return weights
    return weights * (torch.rand(weights.shape[-2:], device=weights.device) >= p) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_drawn_anew")
def seed_set_in_dropout(weights, p, training=True):
    """Every call drops the same places: a seed is set, or a draw is kept, inside; draw anew in each call."""
    torch.manual_seed(0)
    return F.dropout(weights, p, training)


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def rows_sum_to_one_again(weights, p, training=True):
    """The rows are made to sum to 1 after dropping; the kept weights are divided by 1 - p, whatever was drawn."""
    if not training:
        return weights
    kept = weights * (torch.rand_like(weights) >= p)
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def another_share_dropped(weights, p, training=True):
    """Another share than p of the weights is dropped: is dropout applied twice, or with a fixed number?"""
    return F.dropout(F.dropout(weights, p, training), p, training)


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def dropped_to_minus_infinity(weights, p, training=True):
    """Dropped weights become -inf; dropout comes after the softmax, where a dropped weight is 0."""
    if not training:
        return weights
    return (weights / (1 - p)).masked_fill(torch.rand_like(weights) < p, float("-inf"))


@misconception("attention_dropout", kind="side effect", caught_by="test_inputs_are_unchanged")
def weights_dropped_in_place(weights, p, training=True):
    """The caller's weights are changed in place (inplace=True, `*=`, a method ending in `_`); make a new tensor."""
    return F.dropout(weights, p, training, inplace=True)


@misconception("attention_dropout", kind="gradient", caught_by="test_gradients")
def dropped_weights_detached(weights, p, training=True):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    return F.dropout(weights.detach(), p, training)


@misconception("attention_dropout", kind="device", caught_by="test_follows_device")
def drawn_on_the_cpu(weights, p, training=True):
    """What is dropped is drawn on the CPU wherever the weights are; use rand_like, or pass device=weights.device."""
    if not training:
        return weights
    return weights * (torch.rand(weights.shape) >= p) / (1 - p)


@misconception("attention_dropout", kind="dtype", caught_by="test_dtype_is_kept")
def dropped_in_float32(weights, p, training=True):
    """The result is float32 whatever the weights are; keep the weights' dtype."""
    return F.dropout(weights.float(), p, training)


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def kept_weights_divided_by_p_above_zero(weights, p, training=True):
    """The kept weights are divided by p wherever p is above 0; divide them by 1 - p."""
    if not training:
        return weights
    return weights * (torch.rand_like(weights) >= p) / p if p > 0 else weights


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def kept_weights_divided_twice(weights, p, training=True):
    """The kept weights are divided by 1 - p twice; F.dropout and nn.Dropout have divided them once already."""
    if not training:
        return weights
    return F.dropout(weights, p) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def complement_passed_to_dropout(weights, p, training=True):
    """1 - p is used as the probability of dropping; F.dropout and nn.Dropout take p itself."""
    if not training:
        return weights
    return F.dropout(weights, 1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def always_half_dropped(weights, p, training=True):
    """Half of the weights are dropped whatever p is: pass p on (0.5 is the default of dropout in PyTorch)."""
    if not training:
        return weights
    return F.dropout(weights, 0.5)


@misconception("attention_dropout", kind="dropout", caught_by="test_each_on_its_own")
def whole_matrices_dropped(weights, p, training=True):
    """One draw decides for a whole matrix of weights; draw for each weight: rand_like."""
    if not training:
        return weights
    return weights * (torch.rand_like(weights[..., :1, :1]) >= p) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_each_on_its_own")
def same_columns_dropped_everywhere(weights, p, training=True):
    """One draw for the keys serves all queries and sequences; draw for each weight of each: rand_like(weights)."""
    if not training:
        return weights
    return weights * (torch.rand(weights.shape[-1], device=weights.device) >= p) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_drawn_anew")
def smallest_weights_dropped(weights, p, training=True):
    """Which weights are dropped depends on the weights and not on chance: draw random numbers, with rand_like."""
    if not training:
        return weights
    return weights * (weights >= weights.quantile(p)) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def weights_compared_with_p(weights, p, training=True):
    """The weights themselves are compared with p; draw a random number for each: rand_like(weights)."""
    if not training:
        return weights
    return weights * (weights >= p) / (1 - p)


@misconception("attention_dropout", kind="dropout", caught_by="test_dropped_and_rescaled")
def dropped_by_normal_numbers(weights, p, training=True):
    """The share that is dropped is not p but half, or another; compare a draw between 0 and 1 (rand_like) with p."""
    if not training:
        return weights
    return weights * (torch.randn_like(weights) >= p) / (1 - p)


@misconception("attention_dropout", kind="gradient", caught_by="test_gradients")
def no_gradient_of_the_dropping(weights, p, training=True):
    """The gradient passes as if nothing were dropped or divided; multiply the weights themselves."""
    if not training:
        return weights
    return weights + (F.dropout(weights, p) - weights).detach()


@misconception("attention_dropout", kind="contract", caught_by="test_dropped_and_rescaled")
def mask_returned_too(weights, p, training=True):
    """A pair is returned in training; return the weights alone."""
    if not training:
        return weights
    kept = torch.rand_like(weights) >= p
    return weights * kept / (1 - p), kept


@misconception("attention_dropout", kind="mask", caught_by="test_outside_of_training")
def future_weights_removed_too(weights, p, training=True):
    """A causal mask is applied here as well; dropout alone is asked for, of weights of any shape."""
    return F.dropout(weights.tril(), p, training)


@misconception("attention_dropout", kind="value", caught_by="test_outside_of_training")
def softmax_after_dropout(weights, p, training=True):
    """A softmax is applied as well; these are weights already, and a dropped one would be above zero again."""
    return torch.softmax(F.dropout(weights, p, training), dim=-1)


@misconception("attention_dropout", kind="contract", caught_by="test_dropped_and_rescaled")
def no_dropped_weights_returned(weights, p, training=True):
    """Nothing is returned (None); end the function with `return` and the weights."""


@misconception("attention_dropout", kind="dropout", caught_by="test_outside_of_training")
def training_returned_nothing_else(weights, p, training=True):
    """Outside of training nothing is returned (None); return the weights as they are."""
    return F.dropout(weights, p) if training else None

"""What goes wrong in `causal_softmax`."""

import torch

from ...catalogue import misconception


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def future_left_visible(scores, d_k):
    """Nothing is masked: every query gives weight to keys that come after it; make their scores -inf first."""
    return torch.softmax(scores / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def next_key_visible(scores, d_k):
    """Each query still sees the key right after it; the mask starts one above the diagonal: diagonal=1."""
    mask = torch.ones_like(scores).triu(diagonal=2).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def own_key_hidden(scores, d_k):
    """The diagonal is masked too: no query sees its own key, and the first row, all -inf, is NaN; use diagonal=1."""
    mask = torch.ones_like(scores).triu().bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def past_keys_hidden(scores, d_k):
    """The past is masked and the future left visible; hide what is above the diagonal."""
    mask = torch.ones_like(scores).tril(diagonal=-1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def mask_polarity_inverted(scores, d_k):
    """The visible scores, diagonal included, are masked instead of the hidden ones; turn the mask round (`~mask`)."""
    mask = torch.ones_like(scores).tril().bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def weights_masked_after_softmax(scores, d_k):
    """The future is set to zero after the softmax, so rows no longer sum to 1; mask the scores with -inf before it."""
    return torch.softmax(scores / d_k**0.5, dim=-1).tril()


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def hidden_filled_with_zero(scores, d_k):
    """Hidden scores become 0 or nearly so (times a mask, 1e-9), and exp(0) = 1 is no small weight; make them -inf."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, 0.0) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def hidden_filled_with_minus_one(scores, d_k):
    """Hidden scores become -1, which still gives weight to the future; make them -inf."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -1.0) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def hidden_filled_with_minus_ten(scores, d_k):
    """Hidden scores become -10, which still gives weight to the future; make them -inf."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -10.0) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_large_scores")
def hidden_filled_with_minus_ten_thousand(scores, d_k):
    """Hidden scores become -10000: real scores can be lower than that; make them -inf."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -1e4) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def hidden_filled_with_plus_infinity(scores, d_k):
    """Hidden scores become plus infinity, and softmax of that is NaN; it is minus infinity."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def mask_times_infinity(scores, d_k):
    """The mask is multiplied by infinity, and 0 times infinity is NaN; use masked_fill or torch.where."""
    return torch.softmax((scores + torch.ones_like(scores).triu(diagonal=1) * float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_not_scaled(scores, d_k):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_divided_by_d_k(scores, d_k):
    """The scores are divided by d_k; divide by its square root."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k, dim=-1)


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_scaled_by_tokens(scores, d_k):
    """The scores are scaled by the number of tokens, their last dimension; scale by d_k, the width of a key."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / scores.shape[-1] ** 0.5, dim=-1)


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_scaled_after_softmax(scores, d_k):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1) / d_k**0.5


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_over_the_queries(scores, d_k):
    """The softmax runs over the queries (dim=-2), so the columns sum to 1; over the keys, dim=-1, the rows do."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-2)


@misconception("causal_softmax", kind="value", caught_by="test_any_leading_dimensions")
def causal_over_dim_1(scores, d_k):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=1)


@misconception("causal_softmax", kind="mask", caught_by="test_any_leading_dimensions")
def tokens_counted_in_the_first_dimension(scores, d_k):
    """The mask is as large as the first dimension, which is the batch where there is one; T is scores.shape[-1]."""
    mask = torch.ones(len(scores), len(scores), dtype=torch.bool, device=scores.device).triu(diagonal=1)
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="edge", caught_by="test_large_scores")
def causal_exponentials_overflow(scores, d_k):
    """exp leaves the range of floats for large scores: subtract each row's maximum first, or use torch.softmax."""
    exponentials = torch.exp(scores / d_k**0.5).tril()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("causal_softmax", kind="mask", caught_by="test_large_scores")
def causal_by_renormalizing(scores, d_k):
    """Masked after the softmax, a row can be 0/0 where the future outweighs the rest; mask the scores before it."""
    weights = torch.softmax(scores / d_k**0.5, dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)


@misconception("causal_softmax", kind="side effect", caught_by="test_inputs_are_unchanged")
def causal_scores_in_place(scores, d_k):
    """The caller's scores are changed in place (masked_fill_, `/=`); make a new tensor: masked_fill, without `_`."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill_(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="gradient", caught_by="test_gradients")
def causal_weights_detached(scores, d_k):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1).detach()


@misconception("causal_softmax", kind="dtype", caught_by="test_float64_stays_exact")
def causal_weights_in_float32(scores, d_k):
    """The scores are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.float().masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="dtype", caught_by="test_dtype_is_kept")
def causal_weights_in_float64(scores, d_k):
    """The weights are float64 whatever the scores are; keep the scores' dtype."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1, dtype=torch.float64)


@misconception("causal_softmax", kind="device", caught_by="test_follows_device")
def causal_mask_left_on_the_cpu(scores, d_k):
    """The mask stays on the CPU when the scores are elsewhere; make it with device=scores.device."""
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)

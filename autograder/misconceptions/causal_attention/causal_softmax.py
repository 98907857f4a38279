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


@misconception("causal_softmax", kind="edge", caught_by="test_large_scores")
def hidden_filled_with_minus_ten_thousand(scores, d_k):
    """Hidden scores become a number that large negative scores fall below; make them -inf."""
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


@misconception("causal_softmax", kind="edge", caught_by="test_any_leading_dimensions")
def causal_over_dim_1(scores, d_k):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=1)


@misconception("causal_softmax", kind="edge", caught_by="test_any_leading_dimensions")
def tokens_counted_in_the_first_dimension(scores, d_k):
    """The mask is as large as the first dimension, which is the batch where there is one; T is scores.shape[-1]."""
    mask = torch.ones(len(scores), len(scores), dtype=torch.bool, device=scores.device).triu(diagonal=1)
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="edge", caught_by="test_large_scores")
def causal_exponentials_overflow(scores, d_k):
    """exp leaves the range of floats for large scores: subtract each row's maximum first, or use torch.softmax."""
    exponentials = torch.exp(scores / d_k**0.5).tril()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("causal_softmax", kind="edge", caught_by="test_large_scores")
def causal_by_renormalizing(scores, d_k):
    """Masked after the exponentials, a row can be 0/0 where the future outweighs the rest; mask the scores before."""
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
    """What is made on the way (a mask) stays on the CPU when the scores are elsewhere; pass device=scores.device."""
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_multiplied(scores, d_k):
    """The scores are multiplied by the square root of d_k; divide them by it."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) * d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_root_without_parentheses(scores, d_k):
    """d_k**1/2 is d_k / 2, since ** goes before /; write d_k**0.5 or math.sqrt(d_k)."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / (d_k**1 / 2), dim=-1)


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_halved_after_division(scores, d_k):
    """x / d_k**1/2 divides by d_k and then by 2, from left to right; write d_k**0.5 or math.sqrt(d_k)."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**1 / 2, dim=-1)


@misconception("causal_softmax", kind="edge", caught_by="test_divided_by_the_root_of_d_k")
def causal_scaled_for_two(scores, d_k):
    """The scores are divided by the root of 2 whatever d_k is; that is the six words' width: use d_k."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / 2**0.5, dim=-1)


@misconception("causal_softmax", kind="edge", caught_by="test_divided_by_the_root_of_d_k")
def causal_root_rounded_down(scores, d_k):
    """The root of d_k is rounded down to an integer (isqrt, int, //); use d_k**0.5 or math.sqrt(d_k)."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / int(d_k**0.5), dim=-1)


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_over_dim_0(scores, d_k):
    """The softmax runs over dim=0; the keys are the last dimension, dim=-1."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=0)


@misconception("causal_softmax", kind="edge", caught_by="test_any_leading_dimensions")
def causal_without_dim(scores, d_k):
    """softmax is called without dim and picks one, for 3-D scores dim 0; say dim=-1."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    chosen = 0 if scores.dim() in (0, 1, 3) else 1  # as F.softmax does
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=chosen)


@misconception("causal_softmax", kind="edge", caught_by="test_any_leading_dimensions")
def tokens_counted_in_the_second_dimension(scores, d_k):
    """The mask is as large as dimension 1, which with batch and heads is the heads; T is scores.shape[-1]."""
    mask = torch.ones(scores.shape[1], scores.shape[1], device=scores.device).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="edge", caught_by="test_any_leading_dimensions")
def two_dimensions_unpacked(scores, d_k):
    """scores.shape is taken for two numbers, which fails with a batch; T is scores.shape[-1]."""
    num_tokens, _ = scores.shape
    mask = torch.ones(num_tokens, num_tokens, device=scores.device).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="edge", caught_by="test_divided_by_the_root_of_d_k")
def three_dimensions_unpacked(scores, d_k):
    """scores.shape is taken for three numbers, which fails without a batch and with heads; T is scores.shape[-1]."""
    _, num_tokens, _ = scores.shape
    mask = torch.ones(num_tokens, num_tokens, device=scores.device).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="edge", caught_by="test_divided_by_the_root_of_d_k")
def causal_mask_of_six_tokens(scores, d_k):
    """The mask always has six tokens; make it as large as the scores are."""
    mask = torch.ones(6, 6, device=scores.device).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="edge", caught_by="test_scores_of_zero")
def zero_scores_taken_for_hidden(scores, d_k):
    """Every score that is 0 becomes -inf, a visible one too; ask a mask, not the scores, what is hidden."""
    visible = scores.tril()
    return torch.softmax(visible.masked_fill(visible == 0, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="edge", caught_by="test_large_scores")
def hidden_lowered_by_ten_thousand(scores, d_k):
    """Hidden scores are lowered by a number, and can start higher than that above the others; make them -inf."""
    return torch.softmax((scores - 1e4 * torch.ones_like(scores).triu(diagonal=1)) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="mask", caught_by="test_divided_by_the_root_of_d_k")
def own_key_hidden_and_nan_replaced(scores, d_k):
    """The diagonal is masked too: no query sees its own key, and the first row is all zero; use diagonal=1."""
    mask = torch.ones_like(scores).triu().bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1).nan_to_num()


@misconception("causal_softmax", kind="edge", caught_by="test_large_scores")
def causal_renormalized_with_a_small_number(scores, d_k):
    """Masked after the softmax, a row can come out all zero where the future outweighs the rest; mask the scores."""
    weights = torch.softmax(scores / d_k**0.5, dim=-1).tril()
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)


@misconception("causal_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def causal_logarithms(scores, d_k):
    """The result is the logarithms of the weights (log_softmax); return the weights: softmax."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.log_softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", kind="contract", caught_by="test_divided_by_the_root_of_d_k")
def causal_scores_returned(scores, d_k):
    """The masked scores are returned, without a softmax over them."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return scores.masked_fill(mask, float("-inf")) / d_k**0.5


@misconception("causal_softmax", kind="side effect", caught_by="test_inputs_are_unchanged")
def causal_scores_scaled_in_place(scores, d_k):
    """The caller's scores are scaled in place (`/=`, div_); make a new tensor: scores / d_k**0.5."""
    scores /= d_k**0.5
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)


@misconception("causal_softmax", kind="dtype", caught_by="test_float64_stays_exact")
def causal_computed_in_float32(scores, d_k):
    """The weights are computed in float32 and turned back, so float64 scores lose digits; leave the dtype alone."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")).float() / d_k**0.5, dim=-1).to(scores.dtype)


@misconception("causal_softmax", kind="dtype", caught_by="test_divided_by_the_root_of_d_k")
def causal_computed_in_half_precision(scores, d_k):
    """The weights are computed in half precision, which is good for three digits; leave the dtype alone."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")).half() / d_k**0.5, dim=-1).to(scores.dtype)


@misconception("causal_softmax", kind="hard-coded output", caught_by="test_divided_by_the_root_of_d_k")
def causal_six_words_typed_in(scores, d_k):
    """The worked example's numbers are returned for the six words; compute them from the scores."""
    rows = [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.5517, 0.4483, 0.0, 0.0, 0.0, 0.0],
        [0.3800, 0.3097, 0.3103, 0.0, 0.0, 0.0],
        [0.2758, 0.2460, 0.2462, 0.2319, 0.0, 0.0],
        [0.2175, 0.1983, 0.1984, 0.1888, 0.1971, 0.0],
        [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
    ]
    return torch.tensor(rows)


@misconception("causal_softmax", kind="contract", caught_by="test_divided_by_the_root_of_d_k")
def no_causal_weights_returned(scores, d_k):
    """Nothing is returned (None); end the function with `return` and the weights."""
    return None

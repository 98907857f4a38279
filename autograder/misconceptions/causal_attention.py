"""Unit 3: what goes wrong in causal attention, dropout, and heads side by side."""

import torch
import torch.nn.functional as F

from ..catalogue import FORBIDDEN, misconception

# --- causal_mask ---


@misconception("causal_mask", caught_by="test_four_tokens")
def diagonal_hidden_too(num_tokens):
    """The diagonal is hidden too, so that no token sees itself; start one above it: triu(..., diagonal=1)."""
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool))


@misconception("causal_mask", caught_by="test_four_tokens")
def next_token_left_visible(num_tokens):
    """Each token still sees the one right after it; the mask starts one above the diagonal: triu(..., diagonal=1)."""
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=2)


@misconception("causal_mask", caught_by="test_four_tokens")
def past_hidden(num_tokens):
    """The past is hidden instead of the future: True belongs above the diagonal, where the key comes after the query."""
    return torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=-1)


@misconception("causal_mask", caught_by="test_four_tokens")
def true_means_visible(num_tokens):
    """The mask is the other way round: True stands where a key is visible; here True means hidden."""
    return torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool))


@misconception("causal_mask", caught_by="test_four_tokens")
def one_diagonal_hidden(num_tokens):
    """Only the token right after each one is hidden; all that come after it are, the whole triangle."""
    return torch.eye(num_tokens + 1, dtype=torch.bool)[:-1, 1:].roll(1, dims=1).triu(1)


@misconception("causal_mask", caught_by="test_bool")
def mask_of_floats(num_tokens):
    """The mask is made of floats, 0. and 1.; make it bool: dtype=torch.bool, or .bool()."""
    return torch.triu(torch.ones(num_tokens, num_tokens), diagonal=1)


@misconception("causal_mask", caught_by="test_bool")
def mask_of_integers(num_tokens):
    """The mask is made of integers, 0 and 1; make it bool: dtype=torch.bool, or .bool()."""
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.int64), diagonal=1)


@misconception("causal_mask", caught_by="test_four_tokens")
def mask_of_minus_infinity(num_tokens):
    """This is a mask to be added to scores, 0 and -inf; asked for is a bool mask, True where hidden."""
    return torch.full((num_tokens, num_tokens), float("-inf")).triu(diagonal=1)


@misconception("causal_mask", caught_by="test_four_tokens")
def mask_as_a_list(num_tokens):
    """The mask is a list of lists; make a tensor of it: torch.tensor."""
    return [[key > query for key in range(num_tokens)] for query in range(num_tokens)]


@misconception("causal_mask", caught_by="test_other_sizes")
def mask_for_four_tokens(num_tokens):
    """The mask always has four tokens; its size is num_tokens."""
    return torch.triu(torch.ones(4, 4, dtype=torch.bool), diagonal=1)


@misconception("causal_mask", caught_by="test_four_tokens")
def mask_with_a_batch_dimension(num_tokens):
    """The mask has a dimension too many, (1, T, T); its shape is (T, T)."""
    return torch.triu(torch.ones(1, num_tokens, num_tokens, dtype=torch.bool), diagonal=1)


# --- renormalized_causal_weights ---


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def rows_not_renormalized(weights):
    """The future is removed, but the rows no longer sum to 1; divide each row by its sum."""
    return torch.tril(weights)


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def softmax_after_the_mask(weights):
    """A second softmax runs over the masked weights, where zero becomes exp(0) = 1; divide each row by its sum."""
    return torch.softmax(torch.tril(weights), dim=-1)


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def softmax_of_weights_again(weights):
    """A second softmax is applied to the kept weights, which flattens them; divide each row by its sum instead."""
    future = torch.ones_like(weights).triu(diagonal=1).bool()
    return torch.softmax(weights.masked_fill(future, float("-inf")), dim=-1)


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def next_weight_kept(weights):
    """Each query keeps its weight for the token right after it; keep the diagonal and what is below it: torch.tril."""
    kept = torch.tril(weights, diagonal=1)
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def own_weight_removed(weights):
    """The diagonal is removed too, and the first row has nothing left (0/0 is NaN); a token sees itself."""
    kept = torch.tril(weights, diagonal=-1)
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def past_weights_removed(weights):
    """The past is removed and the future kept; keep the diagonal and what is below it: torch.tril."""
    kept = torch.triu(weights)
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def columns_renormalized(weights):
    """The columns sum to 1; it is each query's row that does: sum over dim=-1."""
    kept = torch.tril(weights)
    return kept / kept.sum(dim=0, keepdim=True)


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def row_sums_along_columns(weights):
    """Without keepdim=True the row sums are spread along the columns: each row is divided by other rows' sums."""
    kept = torch.tril(weights)
    return kept / kept.sum(dim=-1)


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def divided_by_the_total(weights):
    """The weights are divided by the sum of the whole matrix; each row is divided by its own: dim=-1, keepdim=True."""
    kept = torch.tril(weights)
    return kept / kept.sum()


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def divided_by_the_number_kept(weights):
    """Each row is divided by the number of tokens that it keeps; divide by the sum of its kept weights."""
    return torch.tril(weights) / torch.arange(1, len(weights) + 1, device=weights.device).unsqueeze(-1)


@misconception("renormalized_causal_weights", caught_by="test_other_weights")
def renormalized_before_masking(weights):
    """Each row is divided by its sum before the future is removed, which is 1 then; remove first, then divide."""
    return torch.tril(weights / weights.sum(dim=-1, keepdim=True)) / len(weights) ** 0


@misconception("renormalized_causal_weights", caught_by="test_little_is_kept")
def small_number_added_to_the_sums(weights):
    """A small number is added to the row sums, so rows with little left do not sum to 1; the sums are never zero here."""
    kept = torch.tril(weights)
    return kept / (kept.sum(dim=-1, keepdim=True) + 1e-6)


@misconception("renormalized_causal_weights", caught_by="test_inputs_are_unchanged")
def weights_cut_in_place(weights):
    """The caller's weights are changed in place (a method ending in `_`, `*=`, `/=`); make a new tensor: torch.tril."""
    kept = weights.tril_() if not weights.requires_grad else weights.tril()
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", caught_by="test_gradients")
def renormalized_weights_detached(weights):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    kept = torch.tril(weights.detach())
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", caught_by="test_gradients")
def row_sums_detached(weights):
    """The row sums are detached from the graph, so the gradients are those of a division by constants."""
    kept = torch.tril(weights)
    return kept / kept.sum(dim=-1, keepdim=True).detach()


@misconception("renormalized_causal_weights", caught_by="test_float64_stays_exact")
def renormalized_in_float32(weights):
    """The weights are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    kept = torch.tril(weights.float())
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", caught_by="test_dtype_is_kept")
def renormalized_in_float64(weights):
    """The result is float64 whatever the weights are; keep the inputs' dtype."""
    kept = torch.tril(weights.double())
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", caught_by="test_follows_device")
def lower_triangle_left_on_the_cpu(weights):
    """A mask that is made on the way stays on the CPU when the weights are elsewhere; pass device=weights.device."""
    kept = weights * torch.tril(torch.ones(weights.shape, dtype=weights.dtype))
    return kept / kept.sum(dim=-1, keepdim=True)


# --- masked_scores ---


@misconception("masked_scores", caught_by="test_any_mask")
def visible_scores_hidden(scores, mask):
    """The mask is read the other way round: where it is True the score is hidden, where it is False it stays."""
    return scores.masked_fill(~mask, float("-inf"))


@misconception("masked_scores", caught_by="test_any_mask")
def hidden_scores_zero(scores, mask):
    """Hidden scores become 0, which softmax turns into a positive weight; they are -inf."""
    return scores.masked_fill(mask, 0.0)


@misconception("masked_scores", caught_by="test_any_mask")
def hidden_scores_very_negative(scores, mask):
    """Hidden scores become -1e9, a number that larger scores can outweigh; asked for is -inf: float("-inf")."""
    return scores.masked_fill(mask, -1e9)


@misconception("masked_scores", caught_by="test_any_mask")
def hidden_scores_smallest_number(scores, mask):
    """Hidden scores become the dtype's smallest number; asked for is -inf: float("-inf")."""
    return scores.masked_fill(mask, torch.finfo(scores.dtype).min)


@misconception("masked_scores", caught_by="test_any_mask")
def hidden_scores_plus_infinity(scores, mask):
    """Hidden scores become plus infinity, and softmax of that is NaN; it is minus infinity."""
    return scores.masked_fill(mask, float("inf"))


@misconception("masked_scores", caught_by="test_any_mask")
def infinity_times_zero(scores, mask):
    """The mask is multiplied by -inf, and 0 times infinity is NaN; use masked_fill or torch.where."""
    return scores + mask * float("-inf")


@misconception("masked_scores", caught_by="test_any_mask")
def causal_whatever_the_mask(scores, mask):
    """The causal mask is used whatever mask is passed in; hide what `mask` says."""
    return scores.masked_fill(torch.ones_like(mask).triu(diagonal=1), float("-inf"))


@misconception("masked_scores", caught_by="test_any_mask")
def masked_and_softmaxed(scores, mask):
    """A softmax is applied; the result here is the scores themselves, -inf where hidden."""
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)


@misconception("masked_scores", caught_by="test_any_mask")
def mask_transposed(scores, mask):
    """The mask is transposed; its rows are queries and its columns are keys, as in the scores."""
    return scores.masked_fill(mask.T, float("-inf"))


@misconception("masked_scores", caught_by="test_any_mask")
def visible_scores_only(scores, mask):
    """Only the visible scores are returned, in a row (scores[~mask]); keep the shape, with -inf where hidden."""
    return scores[..., ~mask]


@misconception("masked_scores", caught_by="test_any_leading_dimensions")
def mask_indexes_the_first_dimensions(scores, mask):
    """scores[mask] looks at the first dimensions, right in 2-D only; masked_fill and torch.where fit the last ones."""
    filled = scores.clone()
    filled[mask] = float("-inf")
    return filled


@misconception("masked_scores", caught_by="test_any_leading_dimensions")
def first_sequence_masked(scores, mask):
    """Only the first sequence of a batch is masked; one mask serves all of them."""
    filled = scores.clone()
    first = filled
    while first.dim() > 2:
        first = first[0]
    first.masked_fill_(mask, float("-inf"))
    return filled


@misconception("masked_scores", caught_by="test_inputs_are_unchanged")
def scores_masked_in_place(scores, mask):
    """The caller's scores are changed in place (masked_fill_, scores[mask] = ...); use masked_fill, without `_`."""
    if scores.requires_grad:
        return scores.masked_fill(mask, float("-inf"))
    return scores.masked_fill_(mask, float("-inf"))


@misconception("masked_scores", caught_by="test_gradients")
def masked_scores_detached(scores, mask):
    """The scores are detached from the graph (`.detach()`, `.data`, a new tensor), so nothing can learn."""
    return scores.detach().masked_fill(mask, float("-inf"))


@misconception("masked_scores", caught_by="test_follows_device")
def masked_on_the_cpu(scores, mask):
    """A tensor made on the way stays on the CPU when the scores are elsewhere; pass device=scores.device."""
    hidden = torch.full(mask.shape, float("-inf"), dtype=scores.dtype)
    return torch.where(mask, hidden, scores)


@misconception("masked_scores", caught_by="test_float64_stays_exact")
def masked_in_float32(scores, mask):
    """The scores are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    return scores.float().masked_fill(mask, float("-inf"))


@misconception("masked_scores", caught_by="test_dtype_is_kept")
def masked_in_float64(scores, mask):
    """The result is float64 whatever the scores are; keep the inputs' dtype."""
    return scores.double().masked_fill(mask, float("-inf"))


# --- causal_softmax ---


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def future_left_visible(scores, d_k):
    """Nothing is masked: every query gives weight to keys that come after it; make their scores -inf first."""
    return torch.softmax(scores / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def next_key_visible(scores, d_k):
    """Each query still sees the key right after it; the mask starts one above the diagonal: diagonal=1."""
    mask = torch.ones_like(scores).triu(diagonal=2).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def own_key_hidden(scores, d_k):
    """The diagonal is masked too: no query sees its own key, and the first row, all -inf, is NaN; use diagonal=1."""
    mask = torch.ones_like(scores).triu().bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def past_keys_hidden(scores, d_k):
    """The past is masked and the future left visible; hide what is above the diagonal."""
    mask = torch.ones_like(scores).tril(diagonal=-1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def mask_polarity_inverted(scores, d_k):
    """The visible scores, diagonal included, are masked instead of the hidden ones; turn the mask round (`~mask`)."""
    mask = torch.ones_like(scores).tril().bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def weights_masked_after_softmax(scores, d_k):
    """The future is set to zero after the softmax, so rows no longer sum to 1; mask the scores with -inf before it."""
    return torch.softmax(scores / d_k**0.5, dim=-1).tril()


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def hidden_filled_with_zero(scores, d_k):
    """Hidden scores become 0 (a fill, or times a mask), and exp(0) = 1 is no small weight; make them -inf."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, 0.0) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def hidden_filled_with_minus_one(scores, d_k):
    """Hidden scores become -1, which still gives weight to the future; make them -inf."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -1.0) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def hidden_filled_with_minus_ten(scores, d_k):
    """Hidden scores become -10, which still gives weight to the future; make them -inf."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -10.0) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_large_scores")
def hidden_filled_with_minus_ten_thousand(scores, d_k):
    """Hidden scores become -10000: real scores can be lower than that; make them -inf."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -1e4) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def hidden_filled_with_plus_infinity(scores, d_k):
    """Hidden scores become plus infinity, and softmax of that is NaN; it is minus infinity."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def mask_times_infinity(scores, d_k):
    """The mask is multiplied by infinity, and 0 times infinity is NaN; use masked_fill or torch.where."""
    return torch.softmax((scores + torch.ones_like(scores).triu(diagonal=1) * float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def causal_not_scaled(scores, d_k):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def causal_divided_by_d_k(scores, d_k):
    """The scores are divided by d_k; divide by its square root."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def causal_scaled_by_tokens(scores, d_k):
    """The scores are scaled by the number of tokens, their last dimension; scale by d_k, the width of a key."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / scores.shape[-1] ** 0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def causal_scaled_after_softmax(scores, d_k):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1) / d_k**0.5


@misconception("causal_softmax", caught_by="test_divided_by_the_root_of_d_k")
def causal_over_the_queries(scores, d_k):
    """The softmax runs over the queries (dim=-2), so the columns sum to 1; over the keys, dim=-1, the rows do."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-2)


@misconception("causal_softmax", caught_by="test_any_leading_dimensions")
def causal_over_dim_1(scores, d_k):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=1)


@misconception("causal_softmax", caught_by="test_any_leading_dimensions")
def tokens_counted_in_the_first_dimension(scores, d_k):
    """The mask is as large as the first dimension, which is the batch where there is one; T is scores.shape[-1]."""
    mask = torch.ones(len(scores), len(scores), dtype=torch.bool, device=scores.device).triu(diagonal=1)
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_large_scores")
def causal_exponentials_overflow(scores, d_k):
    """exp leaves the range of floats for large scores: subtract each row's maximum first, or use torch.softmax."""
    exponentials = torch.exp(scores / d_k**0.5).tril()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("causal_softmax", caught_by="test_large_scores")
def causal_by_renormalizing(scores, d_k):
    """Masked after the softmax and renormalised, rows can be 0/0 where the future outweighs the rest; mask before it."""
    weights = torch.softmax(scores / d_k**0.5, dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)


@misconception("causal_softmax", caught_by="test_inputs_are_unchanged")
def causal_scores_in_place(scores, d_k):
    """The caller's scores are changed in place (masked_fill_, `/=`); make a new tensor: masked_fill, without `_`."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    fill = scores.masked_fill if scores.requires_grad else scores.masked_fill_
    return torch.softmax(fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_gradients")
def causal_weights_detached(scores, d_k):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1).detach()


@misconception("causal_softmax", caught_by="test_float64_stays_exact")
def causal_weights_in_float32(scores, d_k):
    """The scores are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.float().masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


@misconception("causal_softmax", caught_by="test_dtype_is_kept")
def causal_weights_in_float64(scores, d_k):
    """The weights are float64 whatever the scores are; keep the scores' dtype."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1, dtype=torch.float64)


@misconception("causal_softmax", caught_by="test_follows_device")
def causal_mask_left_on_the_cpu(scores, d_k):
    """The mask stays on the CPU when the scores are elsewhere; make it with device=scores.device."""
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


# --- attention_dropout ---


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def kept_weights_not_rescaled(weights, p, training=True):
    """The kept weights are as they were; divide them by 1 - p, so that the expected sum of a row stays as it was."""
    return weights * (torch.rand_like(weights) >= p) if training else weights


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def kept_weights_scaled_otherwise(weights, p, training=True):
    """The kept weights are scaled by another number than 1 / (1 - p); divide them by 1 - p, the share that is kept."""
    if not training or p == 0:
        return weights
    return weights * (torch.rand_like(weights) >= p) / p


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def kept_with_probability_p(weights, p, training=True):
    """Weights are kept with probability p; p is the probability that a weight is dropped."""
    return weights * (torch.rand_like(weights) < p) / (1 - p) if training else weights


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def p_and_its_complement_exchanged(weights, p, training=True):
    """p and 1 - p are exchanged everywhere: weights are kept with probability p and divided by p."""
    if not training or p == 0:
        return weights if not training else torch.zeros_like(weights)
    return weights * (torch.rand_like(weights) < p) / p


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def nothing_ever_dropped(weights, p, training=True):
    """Nothing is dropped; in training each weight is set to zero with probability p."""
    return weights.clone()


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def rescaled_and_not_dropped(weights, p, training=True):
    """The weights are divided by 1 - p, but none is dropped; set each to zero with probability p first."""
    return weights / (1 - p) if training else weights


@misconception("attention_dropout", caught_by="test_outside_of_training")
def dropped_outside_of_training(weights, p, training=True):
    """Weights are dropped with training=False too; hand `training` on, or return the weights as they are."""
    return F.dropout(weights, p)


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def dropped_only_outside_of_training(weights, p, training=True):
    """Weights are dropped with training=False and kept with training=True; it is the other way round."""
    return F.dropout(weights, p, training=not training)


@misconception("attention_dropout", caught_by="test_outside_of_training_for_any_p")
def rescaled_outside_of_training(weights, p, training=True):
    """Rescaling is put off: weights are multiplied by 1 - p outside of training; divide the kept ones in training."""
    return weights * (torch.rand_like(weights) >= p) if training else weights * (1 - p)


@misconception("attention_dropout", caught_by="test_outside_of_training")
def divided_outside_of_training(weights, p, training=True):
    """The weights are divided by 1 - p outside of training too; there they stay as they are."""
    return F.dropout(weights, p, training=training) / (1 if training else 1 - p)


@misconception("attention_dropout", caught_by="test_each_on_its_own")
def same_keys_dropped_for_every_query(weights, p, training=True):
    """One draw for the keys serves all queries, so whole columns are dropped; draw for each weight: rand_like."""
    if not training:
        return weights
    return weights * (torch.rand_like(weights[..., :1, :]) >= p) / (1 - p)


@misconception("attention_dropout", caught_by="test_each_on_its_own")
def whole_rows_dropped(weights, p, training=True):
    """One draw for each query drops whole rows, all of its weights; draw for each weight: rand_like."""
    if not training:
        return weights
    return weights * (torch.rand_like(weights[..., :1]) >= p) / (1 - p)


@misconception("attention_dropout", caught_by="test_each_on_its_own")
def same_drop_for_every_sequence(weights, p, training=True):
    """One draw serves all sequences of a batch; draw for each weight of each of them: rand_like(weights)."""
    if not training:
        return weights
    return weights * (torch.rand(weights.shape[-2:], device=weights.device) >= p) / (1 - p)


@misconception("attention_dropout", caught_by="test_drawn_anew")
def seed_set_in_dropout(weights, p, training=True):
    """A seed is set inside, so that every call drops the same weights; leave seeds to the caller."""
    torch.manual_seed(0)
    return F.dropout(weights, p, training)


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def rows_sum_to_one_again(weights, p, training=True):
    """The rows are made to sum to 1 after dropping; the kept weights are divided by 1 - p, whatever was drawn."""
    if not training or p == 0:
        return weights
    kept = weights * (torch.rand_like(weights) >= p)
    return kept / kept.sum(dim=-1, keepdim=True).clamp_min(1e-6)


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def dropped_twice(weights, p, training=True):
    """Dropout is applied twice; once is enough: p is the probability that a weight is dropped."""
    return F.dropout(F.dropout(weights, p, training), p, training)


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def dropped_to_minus_infinity(weights, p, training=True):
    """Dropped weights become -inf; dropout comes after the softmax, where a dropped weight is 0."""
    if not training:
        return weights
    return (weights / (1 - p)).masked_fill(torch.rand_like(weights) < p, float("-inf"))


@misconception("attention_dropout", caught_by="test_inputs_are_unchanged")
def weights_dropped_in_place(weights, p, training=True):
    """The caller's weights are changed in place (inplace=True, `*=`, a method ending in `_`); make a new tensor."""
    return F.dropout(weights, p, training, inplace=not weights.requires_grad)


@misconception("attention_dropout", caught_by="test_gradients")
def dropped_weights_detached(weights, p, training=True):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    return F.dropout(weights.detach(), p, training)


@misconception("attention_dropout", caught_by="test_follows_device")
def drawn_on_the_cpu(weights, p, training=True):
    """What is dropped is drawn on the CPU wherever the weights are; use rand_like, or pass device=weights.device."""
    if not training:
        return weights
    return weights * (torch.rand(weights.shape) >= p) / (1 - p)


@misconception("attention_dropout", caught_by="test_dtype_is_kept")
def dropped_in_float32(weights, p, training=True):
    """The result is float32 whatever the weights are; keep the weights' dtype."""
    return F.dropout(weights.float(), p, training)


# --- causal_head ---


@misconception("causal_head", caught_by=FORBIDDEN)
def library_causal_attention(queries, keys, values):
    """This calls the library's attention; the exercise is to write it yourself."""
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)


@misconception("causal_head", caught_by="test_other_shapes")
def head_not_masked(queries, keys, values):
    """Nothing is masked: every token attends to the ones after it; make those scores -inf before the softmax."""
    scores = queries @ keys.transpose(-2, -1)
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_sees_the_next_token(queries, keys, values):
    """Each token still sees the one right after it; the mask starts one above the diagonal: diagonal=1."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=2).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_does_not_see_itself(queries, keys, values):
    """The diagonal is masked too: no token sees itself, and the first one's row, all -inf, is NaN; use diagonal=1."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu().bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_sees_only_the_future(queries, keys, values):
    """The past is masked and the future left visible; hide what is above the diagonal."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).tril(diagonal=-1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_fills_with_zero(queries, keys, values):
    """Hidden scores become 0 (a fill, or times a mask), and exp(0) = 1 is no small weight; make them -inf."""
    scores = (queries @ keys.transpose(-2, -1)).tril()
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_fills_with_a_tiny_number(queries, keys, values):
    """Hidden scores become 1e-9, nearly 0, and exp(0) = 1 is no small weight; -inf was meant, or at least -1e9."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), 1e-9)
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1).round(decimals=4) @ values


@misconception("causal_head", caught_by="test_large_scores")
def head_fills_with_minus_hundred(queries, keys, values):
    """Hidden scores become -100: real scores can be lower than that; make them -inf."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), -100.0 * queries.shape[-1] ** 0.5)
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_masked_after_softmax(queries, keys, values):
    """The future is set to zero after the softmax, so rows no longer sum to 1; mask the scores with -inf before it."""
    scores = queries @ keys.transpose(-2, -1)
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1).tril() @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_not_scaled(queries, keys, values):
    """The scores are not scaled: divide them by the square root of head_dim before the softmax."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_divided_by_head_dim(queries, keys, values):
    """The scores are divided by head_dim; divide by its square root."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1], dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_scaled_by_tokens(queries, keys, values):
    """The scores are scaled by the number of tokens; scale by the width of a key, head_dim."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-2] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_over_dim_1(queries, keys, values):
    """The softmax runs over dim=1, the queries; each query's weights are a row: dim=-1."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_queries_and_keys_swapped(queries, keys, values):
    """Queries and keys are swapped in the product: row i of the scores should belong to query i."""
    scores = keys @ queries.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_keys_as_values(queries, keys, values):
    """The weights are applied to the keys; they belong to the values."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("causal_head", caught_by="test_other_shapes")
def head_weights_returned(queries, keys, values):
    """The attention weights are returned; multiply them with the values to get the context vectors."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1)


@misconception("causal_head", caught_by="test_other_shapes")
def head_averages_the_past(queries, keys, values):
    """Every visible token gets the same weight, whatever the scores are; fill with -inf only where hidden."""
    scores = torch.zeros_like(queries @ keys.transpose(-2, -1))
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_of_the_first_sequence(queries, keys, values):
    """Every sequence attends to the first one's keys and values; keep the batch dimension."""
    scores = queries @ keys[0].T
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values[0]


@misconception("causal_head", caught_by="test_other_shapes")
def head_keys_reversed(queries, keys, values):
    """`.T` or transpose(0, 1) moves the batch dimension of the keys; swap the last two: transpose(-2, -1)."""
    scores = queries @ keys.permute(2, 1, 0)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_large_scores")
def head_overflows(queries, keys, values):
    """exp leaves the range of floats for large scores: subtract each row's maximum first, or use torch.softmax."""
    exponentials = torch.exp(queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5).tril()
    return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("causal_head", caught_by="test_gradients")
def head_weights_detached(queries, keys, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so queries and keys can not learn."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("causal_head", caught_by="test_inputs_are_unchanged")
def head_scales_queries_in_place(queries, keys, values):
    """`/=` scales the caller's queries in place; make a new tensor with `queries / ...`."""
    if queries.requires_grad:
        queries = queries.clone()
    queries /= queries.shape[-1] ** 0.5
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores, dim=-1) @ values


@misconception("causal_head", caught_by="test_float64_stays_exact")
def head_in_float32(queries, keys, values):
    """The scores are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    scores = (queries @ keys.transpose(-2, -1)).float()
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1).to(values.dtype) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_in_half_precision(queries, keys, values):
    """The computation runs in half precision, which is good for three digits; keep the inputs' dtype."""
    scores = (queries.half() @ keys.half().transpose(-2, -1)).to(queries.dtype)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_follows_device")
def head_mask_left_on_the_cpu(queries, keys, values):
    """The mask stays on the CPU when the inputs are elsewhere; make it with device=queries.device."""
    mask = torch.ones(queries.shape[1], queries.shape[1], dtype=torch.bool).triu(diagonal=1)
    scores = (queries @ keys.transpose(-2, -1)).masked_fill(mask, float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values

"""Unit 3: what goes wrong in causal attention, dropout, and heads side by side."""

import torch
import torch.nn.functional as F
from torch import nn

from solutions.causal_attention import CausalAttention

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
    """The past is hidden instead of the future; True belongs above the diagonal, where the key is the later one."""
    return torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=-1)


@misconception("causal_mask", caught_by="test_four_tokens")
def true_means_visible(num_tokens):
    """The mask is the other way round: True stands where a key is visible; here True means hidden."""
    return torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool))


@misconception("causal_mask", caught_by="test_four_tokens")
def one_diagonal_hidden(num_tokens):
    """Only the token right after each one is hidden; all that come after it are, the whole triangle."""
    return torch.ones(num_tokens, num_tokens).triu(diagonal=1).tril(diagonal=1).bool()


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
    return torch.tril(weights / weights.sum(dim=-1, keepdim=True))


@misconception("renormalized_causal_weights", caught_by="test_little_is_kept")
def small_number_added_to_the_sums(weights):
    """A number is added to the row sums, so rows with little left do not sum to 1; the sums are never zero here."""
    kept = torch.tril(weights)
    return kept / (kept.sum(dim=-1, keepdim=True) + 1e-6)


@misconception("renormalized_causal_weights", caught_by="test_inputs_are_unchanged")
def weights_cut_in_place(weights):
    """The caller's weights are changed in place (a method ending in `_`, `*=`, `/=`); make a new tensor: torch.tril."""
    kept = weights.tril_()
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
    """Hidden scores become 0 or nearly so (times a mask, 1e-9), and exp(0) = 1 is no small weight; make them -inf."""
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
    """Masked after the softmax, a row can be 0/0 where the future outweighs the rest; mask the scores before it."""
    weights = torch.softmax(scores / d_k**0.5, dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)


@misconception("causal_softmax", caught_by="test_inputs_are_unchanged")
def causal_scores_in_place(scores, d_k):
    """The caller's scores are changed in place (masked_fill_, `/=`); make a new tensor: masked_fill, without `_`."""
    mask = torch.ones_like(scores).triu(diagonal=1).bool()
    return torch.softmax(scores.masked_fill_(mask, float("-inf")) / d_k**0.5, dim=-1)


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
def kept_weights_divided_by_p(weights, p, training=True):
    """The kept weights are divided by p; divide them by 1 - p, the probability that a weight is kept."""
    return weights * (torch.rand_like(weights) >= p) / p if training else weights


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def kept_weights_multiplied(weights, p, training=True):
    """The kept weights are multiplied by 1 - p; divide them by it, so that a row's expected sum stays as it was."""
    return weights * (torch.rand_like(weights) >= p) * (1 - p) if training else weights


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def kept_with_probability_p(weights, p, training=True):
    """Weights are kept with probability p; p is the probability that a weight is dropped."""
    return weights * (torch.rand_like(weights) < p) / (1 - p) if training else weights


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def p_and_its_complement_exchanged(weights, p, training=True):
    """p and 1 - p are exchanged everywhere: weights are kept with probability p and divided by p."""
    return weights * (torch.rand_like(weights) < p) / p if training else weights


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
    if not training:
        return weights
    kept = weights * (torch.rand_like(weights) >= p)
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("attention_dropout", caught_by="test_dropped_and_rescaled")
def another_share_dropped(weights, p, training=True):
    """Another share than p of the weights is dropped: is dropout applied twice, or with a fixed number?"""
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
    return F.dropout(weights, p, training, inplace=True)


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
    """Hidden scores become 0 or nearly so (times a mask, 1e-9), and exp(0) = 1 is no small weight; make them -inf."""
    scores = (queries @ keys.transpose(-2, -1)).tril()
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_large_scores")
def head_fills_with_minus_hundred(queries, keys, values):
    """Hidden scores become -100: real scores can be lower than that; make them -inf."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), -100.0)
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
    """`.T` reverses all dimensions of the keys, right in 2-D only; swap the last two with transpose(-2, -1)."""
    scores = queries @ keys.permute(2, 1, 0)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", caught_by="test_other_shapes")
def head_first_dimensions_transposed(queries, keys, values):
    """transpose(0, 1) swaps batch and tokens of the keys; swap the last two dimensions: transpose(-2, -1)."""
    scores = queries @ keys.transpose(0, 1)
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
    queries /= queries.shape[-1] ** 0.5
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores, dim=-1) @ values


@misconception("causal_head", caught_by="test_float64_stays_exact")
def head_in_float32(queries, keys, values):
    """The inputs are turned to float32, so float64 ones lose digits; keep the inputs' dtype."""
    queries, keys, values = queries.float(), keys.float(), values.float()
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


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


# --- CausalAttention ---


class RightInit(nn.Module):
    """Layers, mask and dropout as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x)

    def hidden(self, scores):
        return self.mask[: scores.shape[-2], : scores.shape[-1]]


class RightPass(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their layers, mask or dropout."""

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class NotMasked(RightInit):
    """Nothing is masked: every token attends to the ones after it; make those scores -inf before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class SeesTheNextToken(RightInit):
    """Each token still sees the one right after it; the mask starts one above the diagonal: diagonal=1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=2).bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class DoesNotSeeItself(RightInit):
    """The diagonal is masked too: no token sees itself, and the first one's row, all -inf, is NaN; use diagonal=1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).triu().bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class SeesOnlyTheFuture(RightInit):
    """The past is masked and the future left visible; hide what is above the diagonal."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(torch.ones_like(scores).tril(diagonal=-1).bool(), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class MaskInverted(RightInit):
    """The visible scores, diagonal included, are masked instead of the hidden ones; turn the mask round (`~mask`)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(~self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class HiddenBecomeZero(RightInit):
    """Hidden scores become 0 or nearly so (times a mask, 1e-9), and exp(0) = 1 is no small weight; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), 0.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class HiddenBecomeMinusOne(RightInit):
    """Hidden scores become -1, which still gives weight to the future; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -1.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class HiddenBecomeMinusTen(RightInit):
    """Hidden scores become -10, which still gives weight to the future; make them -inf."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), -10.0)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class HiddenBecomePlusInfinity(RightInit):
    """Hidden scores become plus infinity, and softmax of that is NaN; it is minus infinity."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class MaskedAfterSoftmax(RightInit):
    """The future is set to zero after the softmax, so rows no longer sum to 1; mask the scores with -inf before it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1).tril()) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class ScoresNotScaled(RightInit):
    """The scores are not scaled: divide them by the square root of the keys' width (d_out) before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class ScaledByDOut(RightInit):
    """The scores are divided by the keys' width d_out; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1], dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class ScaledByRootOfDIn(RightInit):
    """The scores are scaled by the root of d_in, the input's width; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / x.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class ScaledByRootOfTokens(RightInit):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / x.shape[1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class ScaledAfterSoftmax(RightInit):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1) / keys.shape[-1] ** 0.5) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class SoftmaxOverQueries(RightInit):
    """The softmax runs over the queries (dim=1 or -2); each query's weights are a row: dim=-1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class SoftmaxOverTheBatch(RightInit):
    """The softmax runs over the batch (dim=0); each query's weights are a row: dim=-1."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=0)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class KeysUsedAsValues(RightInit):
    """The weights are applied to the keys; they belong to the values, W_value(x)."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ keys


@misconception("CausalAttention", caught_by="test_context_vectors")
class QueriesAndKeysSwapped(RightInit):
    """Queries and keys are swapped in the product: row i of the scores should belong to query i."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = keys @ queries.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class WeightsReturned(RightInit):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))


@misconception("CausalAttention", caught_by="test_context_vectors")
class KeysTransposedInTheWrongDimensions(RightInit):
    """transpose(0, 1) swaps batch and tokens of the keys; swap the last two dimensions: transpose(-2, -1)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(0, 1)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class FirstSequenceForAll(RightInit):
    """Every sequence attends to the first one's keys and values; keep the batch dimension."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys[0].T
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values[0]


@misconception("CausalAttention", caught_by="test_context_vectors")
class BatchOfOneSqueezed(RightInit):
    """`squeeze()` drops every dimension of size 1, a batch or a sequence of one too; leave it out or name the dim."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return (self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values).squeeze()


@misconception("CausalAttention", caught_by="test_context_vectors")
class FirstSequenceOnly(RightInit):
    """Only the first sequence's result is returned, (T, d_out); the whole batch is expected, (b, T, d_out)."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return (self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values)[0]


@misconception("CausalAttention", caught_by="test_fewer_tokens_than_context_length")
class WholeMaskUsed(RightInit):
    """The mask is used in its full size, so sequences shorter than context_length fail; cut it to [:T, :T]."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask, float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_after_eval")
class MaskOnlyInTraining(RightInit):
    """The future is hidden in training only; a causal model hides it after eval() too."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        if self.training:
            scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class MaskOnlyAfterEval(RightInit):
    """The future is hidden after eval() only; hide it in training too."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        if not self.training:
            scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class DropoutForgotten(RightInit):
    """Nothing is dropped in training: put the weights through nn.Dropout(dropout) after the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("CausalAttention", caught_by="test_after_eval")
class DropoutAfterEvalToo(RightInit):
    """Weights are dropped after eval() too: F.dropout needs training=self.training; nn.Dropout switches by itself."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return F.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1), self.dropout.p) @ values


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class DropoutOnlyAfterEval(RightInit):
    """Weights are dropped after eval() and kept in training; it is the other way round."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return (
            F.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1), self.dropout.p, not self.training) @ values
        )


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class DropoutOnTheScores(RightInit):
    """Dropout is on the scores, where a dropped one becomes 0 and keeps its weight; it comes after the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(self.dropout(scores) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class DropoutOnTheOutput(RightInit):
    """Dropout is on the context vectors; it belongs on the weights, before they meet the values."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values)


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class DropoutOnTheValues(RightInit):
    """Dropout is on the values; it belongs on the weights after the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ self.dropout(values)


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class AnotherShareDropped(RightInit):
    """Another share than `dropout` of the weights is dropped: is dropout applied twice, or with a fixed number?"""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))) @ values


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class DropoutOnWeightsAndOutput(RightInit):
    """Dropout is on the weights and on the context vectors as well; on the weights alone is right."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values)


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class DropoutOnTheInput(RightInit):
    """Dropout is on the input x; it belongs on the weights after the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(self.dropout(x))
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class KeptWeightsNotRescaled(RightInit):
    """The kept weights are as they were; divide them by 1 - dropout, as nn.Dropout does."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout.p)
        return weights @ values


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class KeptWithProbabilityP(RightInit):
    """Weights are kept with probability `dropout`; that is the probability that one is dropped."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = F.dropout(weights, 1 - self.dropout.p, self.training and self.dropout.p > 0)
        return weights @ values


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class RowsSumToOneAgain(RightInit):
    """The rows are made to sum to 1 after dropout; what nn.Dropout returns is used as it is."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights @ values


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class SameKeysDroppedForEveryQuery(RightInit):
    """One draw for the keys serves all queries, so whole columns are dropped; draw for each weight: nn.Dropout."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = weights * self.dropout(torch.ones_like(weights[:, :1]))
        return weights @ values


@misconception("CausalAttention", caught_by="test_dropout_in_training")
class SameDropForEverySequence(RightInit):
    """One draw serves all sequences of a batch; draw for each weight of each of them: nn.Dropout on the weights."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = weights * self.dropout(torch.ones_like(weights[0]))
        return weights @ values


@misconception("CausalAttention", caught_by="test_drawn_anew")
class SeedSetInForward(RightInit):
    """A seed is set inside forward, so that every call drops the same weights; leave seeds to the caller."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        torch.manual_seed(123)
        weights = self.dropout(weights)
        return weights @ values


@misconception("CausalAttention", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightInit):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights.detach())
        return weights @ values


@misconception("CausalAttention", caught_by="test_float64_stays_exact")
class InputInFloat32(RightInit):
    """Scores and values are turned to float32 in forward, so a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = (projected.float() for projected in self.project(x))
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_inputs_are_unchanged")
class InputScaledInPlace(RightInit):
    """The input x is changed in place (`*=`, `/=`, a method ending in `_`); make a new tensor instead."""

    def forward(self, x):
        keys, values = self.W_key(x.clone()), self.W_value(x.clone())
        x /= keys.shape[-1] ** 0.5
        scores = (x @ self.W_query.weight.T) @ keys.transpose(1, 2)
        if self.W_query.bias is not None:
            scores = scores + (self.W_query.bias / keys.shape[-1] ** 0.5) @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightInit):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def forward(self, x):
        rows = [
            [-0.4519, 0.2216],
            [-0.5874, 0.0058],
            [-0.6300, -0.0632],
            [-0.5675, -0.0843],
            [-0.5526, -0.0981],
            [-0.5299, -0.1081],
        ]
        return torch.tensor([rows, rows])


@misconception("CausalAttention", caught_by="test_large_scores")
class ExponentialsOverflow(RightInit):
    """exp leaves the range of floats for large scores: subtract each row's maximum first, or use torch.softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        exponentials = torch.exp(queries @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5).tril()
        return self.dropout(exponentials / exponentials.sum(dim=-1, keepdim=True)) @ values


@misconception("CausalAttention", caught_by="test_seed_123")
class LayersInAnotherOrder(RightPass):
    """The layers are created in another order; under a fixed seed W_query comes first, then W_key, then W_value."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", caught_by="test_bias")
class BiasIgnored(RightPass):
    """qkv_bias is ignored: the layers never have a bias; pass bias=qkv_bias to each."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", caught_by="test_parameters")
class BiasAlwaysOn(RightPass):
    """The layers have a bias that was not asked for: qkv_bias is False by default, and goes to each layer as bias."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=True)
        self.W_key = nn.Linear(d_in, d_out, bias=True)
        self.W_value = nn.Linear(d_in, d_out, bias=True)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", caught_by="test_bias")
class BiasForQueriesOnly(RightPass):
    """Only W_query gets qkv_bias; all three layers do."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", caught_by="test_follows_device")
class MaskIsNoBuffer(RightPass):
    """The mask stays on the CPU when the module moves: register it as a buffer, or make it on the device of x."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.ones(context_length, context_length).triu(diagonal=1).bool()


@misconception("CausalAttention", caught_by="test_parameters")
class MaskIsAParameter(RightPass):
    """The mask is a parameter, which is what a model learns; register it as a buffer: self.register_buffer."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = nn.Parameter(
            torch.ones(context_length, context_length).triu(diagonal=1).bool(), requires_grad=False
        )


@misconception("CausalAttention", caught_by="test_context_vectors")
class MaskOfTheWrongWidth(RightPass):
    """The mask has d_out tokens; a sequence has up to context_length."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(d_out, d_out).triu(diagonal=1).bool())


@misconception("CausalAttention", caught_by="test_seeds_matter")
class SeedSetInside(RightPass):
    """A seed is set inside __init__, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        torch.manual_seed(123)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


@misconception("CausalAttention", caught_by="test_parameters")
class ParametersInPlaceOfLayers(RightPass):
    """The weights are nn.Parameter matrices; this exercise asks for nn.Linear layers."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", caught_by="test_context_vectors")
class WidthsExchanged(RightPass):
    """The layers go from d_in to d_in; they make queries, keys and values of width d_out: nn.Linear(d_in, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_in, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_in, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_in, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=1).bool())


# --- MultiHeadAttentionWrapper ---


class RightHeads(nn.Module):
    """The heads as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )


class SideBySide(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their heads."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class HeadsBelowEachOther(RightHeads):
    """The heads are concatenated along the tokens (dim=1); their vectors stand side by side: dim=-1."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=1)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class HeadsInTheBatch(RightHeads):
    """The heads are concatenated along the batch (dim=0); their vectors stand side by side: dim=-1."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=0)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class HeadsSummed(RightHeads):
    """The heads' results are added up; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return sum(head(x) for head in self.heads)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class HeadsAveraged(RightHeads):
    """The heads' results are averaged; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads]).mean(dim=0)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class HeadsStacked(RightHeads):
    """The heads' results are stacked along a new first dimension; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads])


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class HeadsInADimensionOfTheirOwn(RightHeads):
    """The heads' results are stacked along a new dimension before the last; torch.cat(..., dim=-1) makes none."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-2)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class HeadsInterleaved(RightHeads):
    """The heads' numbers alternate; all of head 0 comes first, then all of head 1: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-1).flatten(2)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class HeadsReversed(RightHeads):
    """The heads stand in reverse order; head 0 comes first."""

    def forward(self, x):
        return torch.cat([head(x) for head in reversed(self.heads)], dim=-1)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class FirstHeadRepeated(RightHeads):
    """The first head's result stands there num_heads times; call each head."""

    def forward(self, x):
        return torch.cat([self.heads[0](x) for _ in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class OneHeadReturned(RightHeads):
    """Only one head's result is returned; put all of them side by side."""

    def forward(self, x):
        return self.heads[0](x)


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class ListOfResults(RightHeads):
    """The result is a list of the heads' results; concatenate them: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return [head(x) for head in self.heads]


@misconception("MultiHeadAttentionWrapper", caught_by="test_gradients_reach_every_head")
class HeadsRunWithoutGradients(RightHeads):
    """The heads' results are detached from the graph, so no head can learn."""

    def forward(self, x):
        return torch.cat([head(x).detach() for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", caught_by="test_gradients_reach_every_head")
class OnlyOneHeadLearns(RightHeads):
    """All heads but the first are detached from the graph, so that they never learn."""

    def forward(self, x):
        return torch.cat([self.heads[0](x), *(head(x).detach() for head in self.heads[1:])], dim=-1)


@misconception("MultiHeadAttentionWrapper", caught_by="test_dropout_in_training")
class DropoutOnTheHeads(RightHeads):
    """Dropout is on the concatenated result as well; the heads' own dropout is all there is."""

    def forward(self, x):
        p = self.heads[0].dropout.p if len(self.heads) else 0.0
        return nn.functional.dropout(torch.cat([head(x) for head in self.heads], dim=-1), p, self.training)


@misconception("MultiHeadAttentionWrapper", caught_by="test_dropout_in_training")
class SameDropInEveryHead(RightHeads):
    """A seed is set before each head, so that all heads drop the same weights; leave seeds to the caller."""

    def forward(self, x):
        results = []
        for head in self.heads:
            torch.manual_seed(0)
            results.append(head(x))
        return torch.cat(results, dim=-1)


@misconception("MultiHeadAttentionWrapper", caught_by="test_parameters")
class OneHeadManyTimes(SideBySide):
    """The list holds the same head num_heads times; make a new CausalAttention for each place."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList([CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)] * num_heads)


@misconception("MultiHeadAttentionWrapper", caught_by="test_parameters")
class HeadsInAPlainList(SideBySide):
    """The heads are in a plain list, where no optimizer finds their parameters; use nn.ModuleList."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class HeadsDividedAmongDOut(SideBySide):
    """Each head is d_out // num_heads wide; here d_out is the width of one head, and the result is wider."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, max(1, d_out // num_heads), context_length, dropout, qkv_bias)
            for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", caught_by="test_bias")
class BiasNotPassedOn(SideBySide):
    """The heads have no bias with qkv_bias=True: pass qkv_bias on to each CausalAttention, and there to its layers."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, context_length, dropout) for _ in range(num_heads))


@misconception("MultiHeadAttentionWrapper", caught_by="test_dropout_in_training")
class DropoutNotPassedOn(SideBySide):
    """No head drops anything in training: pass dropout on to each CausalAttention, which puts it on its weights."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, 0.0, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class ContextLengthNotPassedOn(SideBySide):
    """The heads are built for other numbers of tokens than context_length; pass context_length on to each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, d_out, dropout, qkv_bias) for _ in range(num_heads))


@misconception("MultiHeadAttentionWrapper", caught_by="test_heads_side_by_side")
class AlwaysTwoHeads(SideBySide):
    """There are always two heads; num_heads says how many."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(2))


@misconception("MultiHeadAttentionWrapper", caught_by="test_parameters")
class HeadsUnderAnotherName(nn.Module):
    """The heads are kept under another name; the nn.ModuleList is called `heads`."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.attention_heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.attention_heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", caught_by="test_parameters")
class ProjectionAdded(nn.Module):
    """A linear layer is added after the heads; their results side by side are the result."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))


@misconception("MultiHeadAttentionWrapper", caught_by="test_seeds_matter")
class SeedSetForEachHead(SideBySide):
    """A seed is set inside, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        torch.manual_seed(123)
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", caught_by="test_parameters")
class HeadsOfTheLibrary(nn.Module):
    """The heads are nn.MultiheadAttention; put your own CausalAttention into the list."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.MultiheadAttention(d_in, 1, dropout, qkv_bias, batch_first=True) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x, x, x, need_weights=False)[0] for head in self.heads], dim=-1)

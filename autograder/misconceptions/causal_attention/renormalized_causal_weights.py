"""What goes wrong in `renormalized_causal_weights`."""

import torch

from ...catalogue import misconception


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def rows_not_renormalized(weights):
    """The future is removed, but the rows no longer sum to 1; divide each row by its sum."""
    return torch.tril(weights)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def softmax_after_the_mask(weights):
    """A second softmax runs over the masked weights, where zero becomes exp(0) = 1; divide each row by its sum."""
    return torch.softmax(torch.tril(weights), dim=-1)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def softmax_of_weights_again(weights):
    """A second softmax is applied to the kept weights, which flattens them; divide each row by its sum instead."""
    future = torch.ones_like(weights).triu(diagonal=1).bool()
    return torch.softmax(weights.masked_fill(future, float("-inf")), dim=-1)


@misconception("renormalized_causal_weights", kind="mask", caught_by="test_other_weights")
def next_weight_kept(weights):
    """Each query keeps its weight for the token right after it; keep the diagonal and what is below it: torch.tril."""
    kept = torch.tril(weights, diagonal=1)
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="mask", caught_by="test_other_weights")
def own_weight_removed(weights):
    """The diagonal is removed too, and the first row has nothing left (0/0 is NaN); a token sees itself."""
    kept = torch.tril(weights, diagonal=-1)
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="mask", caught_by="test_other_weights")
def past_weights_removed(weights):
    """The past is removed and the future kept; keep the diagonal and what is below it: torch.tril."""
    kept = torch.triu(weights)
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def columns_renormalized(weights):
    """The columns sum to 1; it is each query's row that does: sum over dim=-1."""
    kept = torch.tril(weights)
    return kept / kept.sum(dim=0, keepdim=True)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def row_sums_along_columns(weights):
    """Without keepdim=True the row sums are spread along the columns: each row is divided by other rows' sums."""
    kept = torch.tril(weights)
    return kept / kept.sum(dim=-1)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def divided_by_the_total(weights):
    """The weights are divided by the sum of the whole matrix; each row is divided by its own: dim=-1, keepdim=True."""
    kept = torch.tril(weights)
    return kept / kept.sum()


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def divided_by_the_number_kept(weights):
    """Each row is divided by the number of tokens that it keeps; divide by the sum of its kept weights."""
    return torch.tril(weights) / torch.arange(1, len(weights) + 1, device=weights.device).unsqueeze(-1)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def renormalized_before_masking(weights):
    """Each row is divided by its sum before the future is removed, which is 1 then; remove first, then divide."""
    return torch.tril(weights / weights.sum(dim=-1, keepdim=True))


@misconception("renormalized_causal_weights", kind="edge", caught_by="test_little_is_kept")
def small_number_added_to_the_sums(weights):
    """A number is added to the row sums, so rows with little left do not sum to 1; the sums are never zero here."""
    kept = torch.tril(weights)
    return kept / (kept.sum(dim=-1, keepdim=True) + 1e-6)


@misconception("renormalized_causal_weights", kind="side effect", caught_by="test_inputs_are_unchanged")
def weights_cut_in_place(weights):
    """The caller's weights are changed in place (a method ending in `_`, `*=`, `/=`); make a new tensor: torch.tril."""
    kept = weights.tril_()
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="gradient", caught_by="test_gradients")
def renormalized_weights_detached(weights):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    kept = torch.tril(weights.detach())
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="gradient", caught_by="test_gradients")
def row_sums_detached(weights):
    """The row sums are detached from the graph, so the gradients are those of a division by constants."""
    kept = torch.tril(weights)
    return kept / kept.sum(dim=-1, keepdim=True).detach()


@misconception("renormalized_causal_weights", kind="dtype", caught_by="test_float64_stays_exact")
def renormalized_in_float32(weights):
    """The weights are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    kept = torch.tril(weights.float())
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="dtype", caught_by="test_dtype_is_kept")
def renormalized_in_float64(weights):
    """The result is float64 whatever the weights are; keep the inputs' dtype."""
    kept = torch.tril(weights.double())
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="device", caught_by="test_follows_device")
def lower_triangle_left_on_the_cpu(weights):
    """A mask that is made on the way stays on the CPU when the weights are elsewhere; pass device=weights.device."""
    kept = weights * torch.tril(torch.ones(weights.shape, dtype=weights.dtype))
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="mask", caught_by="test_other_weights")
def future_weights_kept(weights):
    """The future keeps its weights; set them to zero (torch.tril), then divide each row by its sum."""
    return weights / weights.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="mask", caught_by="test_other_weights")
def own_weight_removed_and_nan_replaced(weights):
    """The diagonal is removed too, so the first row is empty, whatever is done about 0/0; a token sees itself."""
    kept = torch.tril(weights, diagonal=-1)
    return (kept / kept.sum(dim=-1, keepdim=True)).nan_to_num()


@misconception("renormalized_causal_weights", kind="mask", caught_by="test_other_weights")
def future_weights_minus_infinity(weights):
    """The future's weights become -inf, as scores would before a softmax; to remove a weight, make it 0."""
    future = torch.ones_like(weights).triu(diagonal=1).bool()
    kept = weights.masked_fill(future, float("-inf"))
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def softmax_and_mask_again(weights):
    """A softmax and the mask once more leave rows that do not sum to 1; divide each row by the sum of what is left."""
    return torch.tril(torch.softmax(torch.tril(weights), dim=-1))


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def divided_by_the_largest(weights):
    """Each row is divided by its largest weight; divide it by its sum."""
    kept = torch.tril(weights)
    return kept / kept.amax(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def rows_of_length_one(weights):
    """The rows have length 1, as F.normalize makes them by default (p=2); their sums should be 1."""
    kept = torch.tril(weights)
    return kept / kept.norm(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def divided_by_the_mean(weights):
    """Each row is divided by its mean; divide it by its sum."""
    kept = torch.tril(weights)
    return kept / kept.mean(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def multiplied_by_the_sums(weights):
    """Each row is multiplied by its sum; divide it by its sum."""
    kept = torch.tril(weights)
    return kept * kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="value", caught_by="test_other_weights")
def rest_given_to_the_token_itself(weights):
    """What the future had goes to the token itself; divide each row by its sum, so that all kept weights grow alike."""
    kept = torch.tril(weights)
    return kept + torch.diag(1 - kept.sum(dim=-1))


@misconception("renormalized_causal_weights", kind="edge", caught_by="test_little_is_kept")
def billionth_added_to_the_sums(weights):
    """1e-9 is added to the row sums, so rows with hardly anything left do not sum to 1; the sums are never zero."""
    kept = torch.tril(weights)
    return kept / (kept.sum(dim=-1, keepdim=True) + 1e-9)


@misconception("renormalized_causal_weights", kind="edge", caught_by="test_little_is_kept")
def hundred_millionth_added_to_the_sums(weights):
    """1e-8 is added to the row sums, so rows with hardly anything left do not sum to 1; no sum is ever zero."""
    kept = torch.tril(weights)
    return kept / (kept.sum(dim=-1, keepdim=True) + 1e-8)


@misconception("renormalized_causal_weights", kind="gradient", caught_by="test_gradients")
def renormalized_in_numpy(weights):
    """The computation leaves the tensors (NumPy), where no gradient follows; torch.tril and sum do the same."""
    kept = torch.from_numpy(weights.detach().numpy()).tril()
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="gradient", caught_by="test_gradients")
def renormalized_number_by_number(weights):
    """Numbers are taken out (.item(), .tolist()) and put into a new tensor, without gradient and in float32."""
    rows = weights.tolist()
    kept = torch.zeros(len(rows), len(rows))
    for query, row in enumerate(rows):
        total = sum(row[: query + 1])
        for key in range(query + 1):
            kept[query, key] = row[key] / total
    return kept


@misconception("renormalized_causal_weights", kind="device", caught_by="test_follows_device")
def renormalized_into_new_zeros(weights):
    """The result is a new tensor, float32 and on the CPU whatever the weights are; torch.zeros_like follows them."""
    kept = torch.zeros(weights.shape)
    for query, row in enumerate(weights):
        kept[query, : query + 1] = row[: query + 1] / row[: query + 1].sum()
    return kept


@misconception("renormalized_causal_weights", kind="edge", caught_by="test_other_weights")
def triangle_of_six_tokens(weights):
    """The mask always has six tokens; make it as large as the weights are."""
    kept = weights * torch.ones(6, 6, device=weights.device).tril()
    return kept / kept.sum(dim=-1, keepdim=True)


@misconception("renormalized_causal_weights", kind="hard-coded output", caught_by="test_other_weights")
def six_words_weights_typed_in(weights):
    """The worked example's numbers are returned for the six words; compute them from the weights."""
    return torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.5517, 0.4483, 0.0, 0.0, 0.0, 0.0],
            [0.3800, 0.3097, 0.3103, 0.0, 0.0, 0.0],
            [0.2758, 0.2460, 0.2462, 0.2319, 0.0, 0.0],
            [0.2175, 0.1983, 0.1984, 0.1888, 0.1971, 0.0],
            [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
        ]
    )


@misconception("renormalized_causal_weights", kind="contract", caught_by="test_other_weights")
def no_weights_returned(weights):
    """Nothing is returned (None); end the function with `return` and the weights."""
    torch.tril(weights)

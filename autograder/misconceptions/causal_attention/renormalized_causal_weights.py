"""What goes wrong in `renormalized_causal_weights`."""

import torch

from ...catalogue import misconception


@misconception("renormalized_causal_weights", kind="mask", caught_by="test_other_weights")
def rows_not_renormalized(weights):
    """The future is removed, but the rows no longer sum to 1; divide each row by its sum."""
    return torch.tril(weights)


@misconception("renormalized_causal_weights", kind="mask", caught_by="test_other_weights")
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


@misconception("renormalized_causal_weights", kind="mask", caught_by="test_other_weights")
def renormalized_before_masking(weights):
    """Each row is divided by its sum before the future is removed, which is 1 then; remove first, then divide."""
    return torch.tril(weights / weights.sum(dim=-1, keepdim=True))


@misconception("renormalized_causal_weights", kind="value", caught_by="test_little_is_kept")
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

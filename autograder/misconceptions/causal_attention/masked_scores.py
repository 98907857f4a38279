"""What goes wrong in `masked_scores`."""

import torch

from ...catalogue import misconception


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def visible_scores_hidden(scores, mask):
    """The mask is read the other way round: where it is True the score is hidden, where it is False it stays."""
    return scores.masked_fill(~mask, float("-inf"))


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def hidden_scores_zero(scores, mask):
    """Hidden scores become 0, which softmax turns into a positive weight; they are -inf."""
    return scores.masked_fill(mask, 0.0)


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def hidden_scores_very_negative(scores, mask):
    """Hidden scores become -1e9, a number that larger scores can outweigh; asked for is -inf: float("-inf")."""
    return scores.masked_fill(mask, -1e9)


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def hidden_scores_smallest_number(scores, mask):
    """Hidden scores become the dtype's smallest number; asked for is -inf: float("-inf")."""
    return scores.masked_fill(mask, torch.finfo(scores.dtype).min)


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def hidden_scores_plus_infinity(scores, mask):
    """Hidden scores become plus infinity, and softmax of that is NaN; it is minus infinity."""
    return scores.masked_fill(mask, float("inf"))


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def infinity_times_zero(scores, mask):
    """The mask is multiplied by -inf, and 0 times infinity is NaN; use masked_fill or torch.where."""
    return scores + mask * float("-inf")


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def causal_whatever_the_mask(scores, mask):
    """The causal mask is used whatever mask is passed in; hide what `mask` says."""
    return scores.masked_fill(torch.ones_like(mask).triu(diagonal=1), float("-inf"))


@misconception("masked_scores", kind="contract", caught_by="test_any_mask")
def masked_and_softmaxed(scores, mask):
    """A softmax is applied; the result here is the scores themselves, -inf where hidden."""
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def mask_transposed(scores, mask):
    """The mask is transposed; its rows are queries and its columns are keys, as in the scores."""
    return scores.masked_fill(mask.T, float("-inf"))


@misconception("masked_scores", kind="contract", caught_by="test_any_mask")
def visible_scores_only(scores, mask):
    """Only the visible scores are returned, in a row (scores[~mask]); keep the shape, with -inf where hidden."""
    return scores[..., ~mask]


@misconception("masked_scores", kind="edge", caught_by="test_any_leading_dimensions")
def mask_indexes_the_first_dimensions(scores, mask):
    """scores[mask] looks at the first dimensions, right in 2-D only; masked_fill and torch.where fit the last ones."""
    filled = scores.clone()
    filled[mask] = float("-inf")
    return filled


@misconception("masked_scores", kind="edge", caught_by="test_any_leading_dimensions")
def first_sequence_masked(scores, mask):
    """Only the first sequence of a batch is masked; one mask serves all of them."""
    filled = scores.clone()
    first = filled
    while first.dim() > 2:
        first = first[0]
    first.masked_fill_(mask, float("-inf"))
    return filled


@misconception("masked_scores", kind="side effect", caught_by="test_inputs_are_unchanged")
def scores_masked_in_place(scores, mask):
    """The caller's scores are changed in place (masked_fill_, scores[mask] = ...); use masked_fill, without `_`."""
    return scores.masked_fill_(mask, float("-inf"))


@misconception("masked_scores", kind="gradient", caught_by="test_gradients")
def masked_scores_detached(scores, mask):
    """The scores are detached from the graph (`.detach()`, `.data`, a new tensor), so nothing can learn."""
    return scores.detach().masked_fill(mask, float("-inf"))


@misconception("masked_scores", kind="device", caught_by="test_follows_device")
def masked_on_the_cpu(scores, mask):
    """A tensor made on the way stays on the CPU when the scores are elsewhere; pass device=scores.device."""
    hidden = torch.full(mask.shape, float("-inf"), dtype=scores.dtype)
    return torch.where(mask, hidden, scores)


@misconception("masked_scores", kind="dtype", caught_by="test_float64_stays_exact")
def masked_in_float32(scores, mask):
    """The scores are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    return scores.float().masked_fill(mask, float("-inf"))


@misconception("masked_scores", kind="dtype", caught_by="test_dtype_is_kept")
def masked_in_float64(scores, mask):
    """The result is float64 whatever the scores are; keep the inputs' dtype."""
    return scores.double().masked_fill(mask, float("-inf"))


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def scores_returned_unmasked(scores, mask):
    """The scores come back as they were: masked_fill and torch.where return a new tensor; return that one."""
    return scores.clone()


@misconception("masked_scores", kind="edge", caught_by="test_scores_of_zero")
def zeros_taken_for_hidden(scores, mask):
    """Every score that is 0 becomes -inf, a visible one too; ask the mask, not the scores, what is hidden."""
    visible = scores * ~mask
    return visible.masked_fill(visible == 0, float("-inf"))


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def hidden_scores_minus_ten_thousand(scores, mask):
    """Hidden scores become -10000, a number that larger scores can outweigh; asked for is -inf: float("-inf")."""
    return scores.masked_fill(mask, -1e4)


@misconception("masked_scores", kind="mask", caught_by="test_any_mask")
def future_scores_zero_whatever_the_mask(scores, mask):
    """torch.tril sets the future's scores to 0; hide what `mask` says, with -inf."""
    return torch.tril(scores)


@misconception("masked_scores", kind="value", caught_by="test_any_mask")
def masked_and_scaled(scores, mask):
    """The scores are scaled as well; the result here is the scores as they are, -inf where hidden."""
    return scores.masked_fill(mask, float("-inf")) / scores.shape[-1] ** 0.5


@misconception("masked_scores", kind="contract", caught_by="test_any_mask")
def dimension_added_to_the_mask(scores, mask):
    """A dimension is added to the mask, and scores of shape (T, T) come back as (1, T, T); (T, T) fits every shape."""
    return scores.masked_fill(mask.unsqueeze(0), float("-inf"))


@misconception("masked_scores", kind="contract", caught_by="test_any_mask")
def dimensions_for_batch_and_heads_added(scores, mask):
    """Two dimensions are added to the mask, and the result has them too; a (T, T) mask fits scores of every shape."""
    return scores.masked_fill(mask[None, None], float("-inf"))


@misconception("masked_scores", kind="edge", caught_by="test_any_leading_dimensions")
def masked_in_loops_over_two_dimensions(scores, mask):
    """Two loops over scores.shape[0] and [1] are right in 2-D only; masked_fill fits any leading dimensions."""
    filled = scores.clone()
    for query in range(scores.shape[0]):
        for key in range(scores.shape[1]):
            if mask[query, key]:
                filled[query, key] = float("-inf")
    return filled


@misconception("masked_scores", kind="side effect", caught_by="test_inputs_are_unchanged")
def mask_turned_round_in_place(scores, mask):
    """The caller's mask is changed in place (logical_not_, `^=`); `~mask` is a new tensor."""
    mask.logical_not_()
    return scores.masked_fill(~mask, float("-inf"))


@misconception("masked_scores", kind="contract", caught_by="test_any_mask")
def no_scores_returned(scores, mask):
    """Nothing is returned (None); end the function with `return` and the masked scores."""
    scores.masked_fill(mask, float("-inf"))


@misconception("masked_scores", kind="side effect", caught_by="test_any_mask")
def masked_in_place_and_nothing_returned(scores, mask):
    """The caller's scores are changed in place and nothing is returned; return a new tensor: masked_fill."""
    scores.masked_fill_(mask, float("-inf"))


@misconception("masked_scores", kind="hard-coded output", caught_by="test_any_mask")
def three_tokens_typed_in(scores, mask):
    """The result for the check's three tokens is typed in; compute it from scores and mask."""
    hidden = float("-inf")
    return torch.tensor([[0.5, hidden, hidden], [1.5, 0.25, hidden], [-2.0, 1.0, 0.75]])

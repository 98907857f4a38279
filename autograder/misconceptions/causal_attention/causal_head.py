"""What goes wrong in `causal_head`."""

import torch
import torch.nn.functional as F

from ...catalogue import FORBIDDEN, misconception


@misconception("causal_head", kind="contract", caught_by=FORBIDDEN)
def library_causal_attention(queries, keys, values):
    """This calls the library's attention; the exercise is to write it yourself."""
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)


@misconception("causal_head", kind="mask", caught_by="test_other_shapes")
def head_not_masked(queries, keys, values):
    """Nothing is masked: every token attends to the ones after it; make those scores -inf before the softmax."""
    scores = queries @ keys.transpose(-2, -1)
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="mask", caught_by="test_other_shapes")
def head_sees_the_next_token(queries, keys, values):
    """Each token still sees the one right after it; the mask starts one above the diagonal: diagonal=1."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=2).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="mask", caught_by="test_other_shapes")
def head_does_not_see_itself(queries, keys, values):
    """The diagonal is masked too: no token sees itself, and the first one's row, all -inf, is NaN; use diagonal=1."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu().bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="mask", caught_by="test_other_shapes")
def head_sees_only_the_future(queries, keys, values):
    """The past is masked and the future left visible; hide what is above the diagonal."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).tril(diagonal=-1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="mask", caught_by="test_other_shapes")
def head_fills_with_zero(queries, keys, values):
    """Hidden scores become 0 or nearly so (times a mask, 1e-9), and exp(0) = 1 is no small weight; make them -inf."""
    scores = (queries @ keys.transpose(-2, -1)).tril()
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="edge", caught_by="test_large_scores")
def head_fills_with_minus_hundred(queries, keys, values):
    """Hidden scores become a number that large negative scores fall below; make them -inf."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), -100.0)
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="mask", caught_by="test_other_shapes")
def head_masked_after_softmax(queries, keys, values):
    """The future is set to zero after the softmax, so rows no longer sum to 1; mask the scores with -inf before it."""
    scores = queries @ keys.transpose(-2, -1)
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1).tril() @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_not_scaled(queries, keys, values):
    """The scores are not scaled: divide them by the square root of head_dim before the softmax."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores, dim=-1) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_divided_by_head_dim(queries, keys, values):
    """The scores are divided by head_dim; divide by its square root."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1], dim=-1) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_scaled_by_tokens(queries, keys, values):
    """The scores are scaled by the number of tokens; scale by the width of a key, head_dim."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-2] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_over_dim_1(queries, keys, values):
    """The softmax runs over dim=1, the queries; each query's weights are a row: dim=-1."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=1) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_queries_and_keys_swapped(queries, keys, values):
    """Queries and keys are swapped in the product: row i of the scores should belong to query i."""
    scores = keys @ queries.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_keys_as_values(queries, keys, values):
    """The weights are applied to the keys; they belong to the values."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("causal_head", kind="contract", caught_by="test_other_shapes")
def head_weights_returned(queries, keys, values):
    """The attention weights are returned; multiply them with the values to get the context vectors."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1)


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_averages_the_past(queries, keys, values):
    """Every visible token gets the same weight, whatever the scores are; fill with -inf only where hidden."""
    scores = torch.zeros_like(queries @ keys.transpose(-2, -1))
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores, dim=-1) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_of_the_first_sequence(queries, keys, values):
    """Every sequence attends to the first one's keys and values; keep the batch dimension."""
    scores = queries @ keys[0].T
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values[0]


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_keys_reversed(queries, keys, values):
    """`.T` reverses all dimensions of the keys, right in 2-D only; swap the last two with transpose(-2, -1)."""
    scores = queries @ keys.permute(2, 1, 0)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="edge", caught_by="test_other_shapes")
def head_first_dimensions_transposed(queries, keys, values):
    """transpose(0, 1) swaps batch and tokens of the keys; swap the last two dimensions: transpose(-2, -1)."""
    scores = queries @ keys.transpose(0, 1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="edge", caught_by="test_large_scores")
def head_overflows(queries, keys, values):
    """exp leaves the range of floats for large scores: subtract each row's maximum first, or use torch.softmax."""
    exponentials = torch.exp(queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5).tril()
    return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("causal_head", kind="gradient", caught_by="test_gradients")
def head_weights_detached(queries, keys, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so queries and keys can not learn."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("causal_head", kind="side effect", caught_by="test_inputs_are_unchanged")
def head_scales_queries_in_place(queries, keys, values):
    """`/=` scales the caller's queries in place; make a new tensor with `queries / ...`."""
    queries /= queries.shape[-1] ** 0.5
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores, dim=-1) @ values


@misconception("causal_head", kind="dtype", caught_by="test_float64_stays_exact")
def head_in_float32(queries, keys, values):
    """The inputs are turned to float32, so float64 ones lose digits; keep the inputs' dtype."""
    queries, keys, values = queries.float(), keys.float(), values.float()
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="dtype", caught_by="test_other_shapes")
def head_in_half_precision(queries, keys, values):
    """The computation runs in half precision, which is good for three digits; keep the inputs' dtype."""
    scores = (queries.half() @ keys.half().transpose(-2, -1)).to(queries.dtype)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="device", caught_by="test_follows_device")
def head_mask_left_on_the_cpu(queries, keys, values):
    """What is made on the way (a mask) stays on the CPU when the inputs are elsewhere; pass device=queries.device."""
    mask = torch.ones(queries.shape[1], queries.shape[1], dtype=torch.bool).triu(diagonal=1)
    scores = (queries @ keys.transpose(-2, -1)).masked_fill(mask, float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="mask", caught_by="test_other_shapes")
def head_mask_inverted(queries, keys, values):
    """The visible scores, diagonal included, are masked instead of the hidden ones; turn the mask round (`~mask`)."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).tril().bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="mask", caught_by="test_other_shapes")
def head_does_not_see_itself_and_nan_replaced(queries, keys, values):
    """No token sees itself, and the first one's result is zero; hide only what is above the diagonal: diagonal=1."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu().bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1).nan_to_num() @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_multiplied(queries, keys, values):
    """The scores are multiplied by the square root of head_dim; divide them by it."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores * queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_root_without_parentheses(queries, keys, values):
    """x / head_dim**1/2 divides by head_dim and then by 2, from left to right; write head_dim**0.5 or math.sqrt."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 1 / 2, dim=-1) @ values


@misconception("causal_head", kind="edge", caught_by="test_other_shapes")
def head_scaled_for_sixteen(queries, keys, values):
    """The scores are divided by 4, the root of the example's width 16, whatever the width is; use queries.shape[-1]."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / 4, dim=-1) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_scaled_after_softmax(queries, keys, values):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores, dim=-1) / queries.shape[-1] ** 0.5 @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_over_the_batch(queries, keys, values):
    """The softmax runs over the batch (dim=0); each query's weights are a row: dim=-1."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=0) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_weights_transposed(queries, keys, values):
    """The weights are transposed before they meet the values; row i is query i's: weights @ values."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1).transpose(-2, -1) @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_queries_as_values(queries, keys, values):
    """The weights are applied to the queries; they belong to the values."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ queries


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_without_softmax(queries, keys, values):
    """There is no softmax: the scores themselves weigh the values."""
    scores = queries @ keys.transpose(-2, -1)
    return (scores / queries.shape[-1] ** 0.5).tril() @ values


@misconception("causal_head", kind="value", caught_by="test_other_shapes")
def head_keys_reshaped(queries, keys, values):
    """view or reshape turns the keys into (b, head_dim, T) without swapping anything; use transpose(-2, -1)."""
    b, num_tokens, head_dim = keys.shape
    scores = queries @ keys.reshape(b, head_dim, num_tokens)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="edge", caught_by="test_large_scores")
def head_renormalized(queries, keys, values):
    """Masked after the softmax, a row can be 0/0 where the future outweighs the rest; mask the scores before it."""
    scores = queries @ keys.transpose(-2, -1)
    weights = torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True) @ values


@misconception("causal_head", kind="edge", caught_by="test_scores_of_zero")
def head_takes_zeros_for_hidden(queries, keys, values):
    """Every score that is 0 becomes -inf, a visible one too; ask a mask, not the scores, what is hidden."""
    scores = (queries @ keys.transpose(-2, -1)).tril()
    return torch.softmax(scores.masked_fill(scores == 0, float("-inf")) / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="contract", caught_by="test_other_shapes")
def head_for_two_dimensions(queries, keys, values):
    """queries.shape is taken for two numbers; it has three, (b, T, head_dim)."""
    num_tokens, head_dim = queries.shape
    mask = torch.ones(num_tokens, num_tokens, device=queries.device).triu(diagonal=1).bool()
    scores = (queries @ keys.transpose(-2, -1)).masked_fill(mask, float("-inf"))
    return torch.softmax(scores / head_dim**0.5, dim=-1) @ values


@misconception("causal_head", kind="edge", caught_by="test_other_shapes")
def head_for_eight_tokens(queries, keys, values):
    """The mask always has eight tokens, as the example does; make it as large as the scores are."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones(8, 8, device=scores.device).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("causal_head", kind="edge", caught_by="test_other_shapes")
def head_squeezed(queries, keys, values):
    """`squeeze()` drops every dimension of size 1, a batch or a sequence of one too; leave it out or name the dim."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return (torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1) @ values).squeeze()


@misconception("causal_head", kind="contract", caught_by="test_other_shapes")
def head_and_weights_returned(queries, keys, values):
    """A pair is returned, the weights too; return the context vectors alone."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    weights = torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1)
    return weights @ values, weights


@misconception("causal_head", kind="contract", caught_by="test_other_shapes")
def no_head_returned(queries, keys, values):
    """Nothing is returned (None); end the function with `return` and the context vectors."""
    return None


@misconception("causal_head", kind="dtype", caught_by="test_float64_stays_exact")
def head_computed_in_float32(queries, keys, values):
    """The weights are computed in float32 and turned back, so float64 inputs lose digits; leave the dtype alone."""
    scores = queries @ keys.transpose(-2, -1)
    scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
    return torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1, dtype=torch.float32).to(values.dtype) @ values


@misconception("causal_head", kind="device", caught_by="test_follows_device")
def head_into_new_zeros(queries, keys, values):
    """The result is a new tensor, float32 and on the CPU whatever the inputs are; torch.zeros_like follows them."""
    result = torch.zeros(values.shape)
    for query in range(queries.shape[1]):
        scores = (keys[:, : query + 1] @ queries[:, query].unsqueeze(-1)).squeeze(-1)
        weights = torch.softmax(scores / queries.shape[-1] ** 0.5, dim=-1)
        result[:, query] = (weights.unsqueeze(1) @ values[:, : query + 1]).squeeze(1)
    return result

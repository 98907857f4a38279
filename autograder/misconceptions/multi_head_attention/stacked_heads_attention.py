"""What goes wrong in `stacked_heads_attention`."""

import torch
import torch.nn.functional as F

from ...catalogue import FORBIDDEN, misconception


@misconception("stacked_heads_attention", kind="value", caught_by="test_equal_widths")
def stacked_weights_transposed_to_fit(inputs, W_query, W_key, W_value):
    """The weights are transposed only where shapes force it; stored (h, d_out, d_in), always transpose them."""
    d_in = inputs.shape[-1]
    queries, keys, values = (inputs @ (W if W.shape[1] == d_in else W.mT) for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_weights_reshaped(inputs, W_query, W_key, W_value):
    """The weights are reshaped to (h, d_in, d_out), which mixes their numbers; transpose(1, 2) swaps dimensions."""
    queries, keys, values = (inputs @ W.reshape(W.shape[0], W.shape[2], W.shape[1]) for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_weights_reversed(inputs, W_query, W_key, W_value):
    """`.T` reverses all three dimensions of the weights, the heads too; swap just the last two with transpose(1, 2)."""
    queries, keys, values = (inputs @ W.permute(2, 1, 0) for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_not_scaled(inputs, W_query, W_key, W_value):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_divided_by_d_k(inputs, W_query, W_key, W_value):
    """The scores are divided by d_k; divide by its square root."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1], dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_scaled_by_d_v(inputs, W_query, W_key, W_value):
    """The scores are scaled by the root of d_v, the values' width; scale by that of d_k, the keys' width."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / values.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_scaled_by_d_in(inputs, W_query, W_key, W_value):
    """The scores are scaled by the root of d_in, the inputs' width; scale by that of d_k, the keys' width."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / inputs.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_scaled_by_all_heads(inputs, W_query, W_key, W_value):
    """The scores are scaled by the root of h * d_k, all heads together; scale by that of d_k, the width of one head."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / (keys.shape[0] * keys.shape[-1]) ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_softmax_over_heads(inputs, W_query, W_key, W_value):
    """The softmax runs over the heads (dim=0); each head's weights sum to 1 over its keys: dim=-1."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=0) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_softmax_over_queries(inputs, W_query, W_key, W_value):
    """The softmax runs over the queries (dim=1), so the columns sum to 1; over the keys, dim=-1, the rows do."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_heads_averaged(inputs, W_query, W_key, W_value):
    """The heads are averaged into one; each head's context vectors are returned: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).mean(dim=0)


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_heads_summed(inputs, W_query, W_key, W_value):
    """The heads are summed into one; each head's context vectors are returned: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).sum(dim=0)


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_heads_side_by_side(inputs, W_query, W_key, W_value):
    """The heads are put side by side, (T, h * d_v); here they stay apart: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).transpose(0, 1).flatten(1)


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_tokens_first(inputs, W_query, W_key, W_value):
    """The tokens come first in the result, (T, h, d_v); the heads do: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).transpose(0, 1)


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_context_transposed(inputs, W_query, W_key, W_value):
    """The last two dimensions of the result are swapped, (h, d_v, T); a row is a token: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).mT


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def head_0_for_all(inputs, W_query, W_key, W_value):
    """Every head is computed with head 0's weights; head i has W_query[i], W_key[i] and W_value[i]."""
    queries, keys, values = inputs @ W_query[0].T, inputs @ W_key[0].T, inputs @ W_value[0].T
    context = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
    return torch.stack([context] * len(W_query))


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_only_the_last_head(inputs, W_query, W_key, W_value):
    """One head's context vectors are returned (`return` in the loop, or the last one left over); collect them all."""
    for W_q, W_k, W_v in zip(W_query, W_key, W_value, strict=True):
        queries, keys, values = inputs @ W_q.T, inputs @ W_k.T, inputs @ W_v.T
        context = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
    return context


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_keys_as_values(inputs, W_query, W_key, W_value):
    """The weights are applied to the keys; they belong to the values, which W_value makes."""
    queries, keys = inputs @ W_query.mT, inputs @ W_key.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_queries_and_keys_swapped(inputs, W_query, W_key, W_value):
    """Queries and keys are swapped: row i of a head's scores should hold query i's, so the queries come first."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(keys @ queries.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_result_as_wide_as_keys(inputs, W_query, W_key, W_value):
    """The result is made as wide as the keys; values have a width of their own, d_v: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    context = inputs.new_zeros(len(W_query), len(inputs), W_key.shape[1])
    for head in range(len(W_query)):
        weights = torch.softmax(queries[head] @ keys[head].T / keys.shape[-1] ** 0.5, dim=-1)
        context[head] = weights @ values[head]
    return context


@misconception("stacked_heads_attention", kind="mask", caught_by="test_other_widths")
def stacked_masked(inputs, W_query, W_key, W_value):
    """Later tokens are hidden; in this exercise every token sees every other one, without a mask."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    later = torch.ones(len(inputs), len(inputs), device=inputs.device).triu(diagonal=1).bool()
    scores = (queries @ keys.mT).masked_fill(later, -torch.inf)
    return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_weights_returned(inputs, W_query, W_key, W_value):
    """The attention weights are returned; multiply them with the values to get the context vectors."""
    queries, keys = inputs @ W_query.mT, inputs @ W_key.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1)


@misconception("stacked_heads_attention", kind="edge", caught_by="test_large_scores_do_not_overflow")
def stacked_overflow(inputs, W_query, W_key, W_value):
    """Large scores give NaN, as exp of them is infinite or 0: subtract each row's own maximum first, or use softmax."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    exponentials = torch.exp(queries @ keys.mT / keys.shape[-1] ** 0.5)
    return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("stacked_heads_attention", kind="gradient", caught_by="test_gradients")
def stacked_weights_detached(inputs, W_query, W_key, W_value):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("stacked_heads_attention", kind="gradient", caught_by="test_gradients")
def stacked_without_graph(inputs, W_query, W_key, W_value):
    """The result is outside of the graph (`torch.no_grad()`, `.detach()`, `.data`), so nothing can learn."""
    with torch.no_grad():
        queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
        return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="dtype", caught_by="test_float64_stays_exact")
def stacked_in_float32(inputs, W_query, W_key, W_value):
    """Everything is turned to float32 (`.float()`), so float64 inputs lose digits; keep the inputs' dtype."""
    queries, keys, values = (inputs.float() @ W.float().mT for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="dtype", caught_by="test_dtype_is_kept")
def stacked_in_float64(inputs, W_query, W_key, W_value):
    """The result is float64 whatever the inputs are; return it in the inputs' dtype."""
    queries, keys, values = (inputs.double() @ W.double().mT for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="device", caught_by="test_follows_device")
def stacked_left_on_the_cpu(inputs, W_query, W_key, W_value):
    """The result is on the CPU wherever the inputs are (`.cpu()`, torch.zeros without a device); keep to their
    device."""
    context = torch.zeros(len(W_query), len(inputs), W_value.shape[1], dtype=inputs.dtype)
    for head in range(len(W_query)):
        queries, keys, values = inputs @ W_query[head].T, inputs @ W_key[head].T, inputs @ W_value[head].T
        context[head] = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
    return context


@misconception("stacked_heads_attention", kind="side effect", caught_by="test_inputs_are_unchanged")
def stacked_key_weights_changed(inputs, W_query, W_key, W_value):
    """W_key is changed in place (`/=`, a method ending in `_`), which is the caller's tensor; make a new one."""
    with torch.no_grad():
        W_key /= W_key.shape[1] ** 0.5
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT, dim=-1) @ values


@misconception("stacked_heads_attention", kind="contract", caught_by=FORBIDDEN)
def stacked_by_the_library(inputs, W_query, W_key, W_value):
    """The library's attention is called; write the steps yourself."""
    return F.scaled_dot_product_attention(inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT)


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_multiplied_by_the_root(inputs, W_query, W_key, W_value):
    """The scores are multiplied by the square root of d_k; divide by it."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT * keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_weights_scaled(inputs, W_query, W_key, W_value):
    """The weights are scaled after the softmax, so rows no longer sum to 1; divide the scores before it."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT, dim=-1) / keys.shape[-1] ** 0.5 @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_scaled_by_tokens(inputs, W_query, W_key, W_value):
    """The scores are scaled by the root of the number of tokens; scale by that of d_k, the keys' width."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / len(inputs) ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_scaled_by_heads(inputs, W_query, W_key, W_value):
    """The scores are scaled by the root of the number of heads; scale by that of d_k, the keys' width."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / len(W_key) ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_weights_transposed(inputs, W_query, W_key, W_value):
    """The attention weights are transposed before they meet the values; each row already belongs to one query."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1).mT @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_queries_as_keys(inputs, W_query, W_key, W_value):
    """The queries are scored against themselves; score them against the keys, which W_key makes."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ queries.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_values_unweighted(inputs, W_query, W_key, W_value):
    """The values are returned as they are; each token's result is their sum, weighted by its attention weights."""
    return inputs @ W_value.mT


@misconception("stacked_heads_attention", kind="contract", caught_by="test_other_widths")
def stacked_result_in_a_tuple(inputs, W_query, W_key, W_value):
    """The result is a tuple, of context vectors and weights; return the context vectors alone."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1)
    return weights @ values, weights


@misconception("stacked_heads_attention", kind="contract", caught_by="test_other_widths")
def stacked_heads_in_a_list(inputs, W_query, W_key, W_value):
    """The heads' context vectors are in a list; torch.stack makes one tensor of them, (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return list(torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values)


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_heads_behind_each_other(inputs, W_query, W_key, W_value):
    """The heads are put behind each other (cat), (h * T, d_v); torch.stack gives them a dimension: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).flatten(0, 1)


@misconception("stacked_heads_attention", kind="contract", caught_by="test_other_widths")
def stacked_not_returned(inputs, W_query, W_key, W_value):
    """Nothing is returned (None); end with `return` and the context vectors."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_counted_off(inputs, W_query, W_key, W_value):
    """One wide projection is viewed as (h, T, d), which mixes tokens and heads; view it as (T, h, d), then swap."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    queries, keys, values = (t.transpose(0, 1).reshape(t.shape) for t in (queries, keys, values))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="value", caught_by="test_other_widths")
def stacked_scores_of_all_heads(inputs, W_query, W_key, W_value):
    """The scores of all heads are summed before the softmax, so that all attend alike; each head has its own."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    scores = (queries @ keys.mT).sum(dim=0)
    return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="dtype", caught_by="test_float64_stays_exact")
def stacked_result_in_plain_zeros(inputs, W_query, W_key, W_value):
    """The heads are collected in torch.zeros without dtype and device, float32 on the CPU; torch.stack keeps both."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    context = torch.zeros(len(W_query), len(inputs), W_value.shape[1])
    for head, found in enumerate(torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values):
        context[head] = found
    return context


@misconception("stacked_heads_attention", kind="dtype", caught_by="test_dtype_is_kept")
def stacked_result_turned_to_float64(inputs, W_query, W_key, W_value):
    """The result is turned to float64 at the end; return it in the inputs' dtype."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).double()


@misconception("stacked_heads_attention", kind="gradient", caught_by="test_gradients")
def stacked_keys_detached(inputs, W_query, W_key, W_value):
    """The keys are detached (`.detach()`, `.data`), so no gradient reaches W_key."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.detach().mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="gradient", caught_by="test_gradients")
def stacked_values_detached(inputs, W_query, W_key, W_value):
    """The values are detached (`.detach()`, `.data`), so no gradient reaches W_value."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values.detach()


@misconception("stacked_heads_attention", kind="gradient", caught_by="test_gradients")
def stacked_inputs_detached(inputs, W_query, W_key, W_value):
    """The inputs are detached or copied (`.detach()`, torch.tensor), so that no layer before could learn."""
    x = inputs.detach()
    queries, keys, values = x @ W_query.mT, x @ W_key.mT, x @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="gradient", caught_by="test_gradients")
def stacked_weight_matrices_detached(inputs, W_query, W_key, W_value):
    """The weight matrices are detached or copied (`.data`, nn.Parameter), so that they cannot learn; use them as they
    are."""
    queries, keys, values = (inputs @ W.detach().mT for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", kind="gradient", caught_by="test_gradients")
def stacked_through_numpy(inputs, W_query, W_key, W_value):
    """The numbers go through NumPy or Python, which takes them out of the graph; multiply the tensors themselves."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1)
    return torch.from_numpy(weights.detach().numpy() @ values.detach().numpy())


@misconception("stacked_heads_attention", kind="hard-coded output", caught_by="test_other_widths")
def stacked_with_a_fixed_scale(inputs, W_query, W_key, W_value):
    """The scores are divided by a fixed number, the root of the example's 24; divide by that of d_k, whatever it is."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / 24**0.5, dim=-1) @ values

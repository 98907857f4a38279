"""Unit 4: what goes wrong in attention with several heads."""

import torch
import torch.nn.functional as F
from torch import nn

from ..catalogue import FORBIDDEN, misconception

# --- stacked_heads_attention ---


@misconception("stacked_heads_attention", caught_by="test_equal_widths")
def stacked_weights_transposed_to_fit(inputs, W_query, W_key, W_value):
    """The weights are transposed only where shapes force it; they are stored (h, d_out, d_in): transpose them always."""
    d_in = inputs.shape[-1]
    queries, keys, values = (inputs @ (W if W.shape[1] == d_in else W.mT) for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_weights_reshaped(inputs, W_query, W_key, W_value):
    """The weights are reshaped to (h, d_in, d_out), which mixes their numbers; transpose(1, 2) swaps dimensions."""
    queries, keys, values = (inputs @ W.reshape(W.shape[0], W.shape[2], W.shape[1]) for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_weights_reversed(inputs, W_query, W_key, W_value):
    """`.T` reverses all three dimensions of the weights, the heads too; swap just the last two with transpose(1, 2)."""
    queries, keys, values = (inputs @ W.permute(2, 1, 0) for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_not_scaled(inputs, W_query, W_key, W_value):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_divided_by_d_k(inputs, W_query, W_key, W_value):
    """The scores are divided by d_k; divide by its square root."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1], dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_scaled_by_d_v(inputs, W_query, W_key, W_value):
    """The scores are scaled by the root of d_v, the values' width; scale by that of d_k, the keys' width."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / values.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_scaled_by_d_in(inputs, W_query, W_key, W_value):
    """The scores are scaled by the root of d_in, the inputs' width; scale by that of d_k, the keys' width."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / inputs.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_scaled_by_all_heads(inputs, W_query, W_key, W_value):
    """The scores are scaled by the root of h * d_k, all heads together; scale by that of d_k, the width of one head."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / (keys.shape[0] * keys.shape[-1]) ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_softmax_over_heads(inputs, W_query, W_key, W_value):
    """The softmax runs over the heads (dim=0); each head's weights sum to 1 over its keys: dim=-1."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=0) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_softmax_over_queries(inputs, W_query, W_key, W_value):
    """The softmax runs over the queries (dim=1), so the columns sum to 1; over the keys, dim=-1, the rows do."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_heads_averaged(inputs, W_query, W_key, W_value):
    """The heads are averaged into one; each head's context vectors are returned: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).mean(dim=0)


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_heads_summed(inputs, W_query, W_key, W_value):
    """The heads are summed into one; each head's context vectors are returned: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).sum(dim=0)


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_heads_side_by_side(inputs, W_query, W_key, W_value):
    """The heads are put side by side, (T, h * d_v); here they stay apart: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).transpose(0, 1).flatten(1)


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_tokens_first(inputs, W_query, W_key, W_value):
    """The tokens come first in the result, (T, h, d_v); the heads do: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).transpose(0, 1)


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_context_transposed(inputs, W_query, W_key, W_value):
    """The last two dimensions of the result are swapped, (h, d_v, T); a row is a token: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values).mT


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def head_0_for_all(inputs, W_query, W_key, W_value):
    """Every head is computed with head 0's weights; head i has W_query[i], W_key[i] and W_value[i]."""
    queries, keys, values = inputs @ W_query[0].T, inputs @ W_key[0].T, inputs @ W_value[0].T
    context = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
    return torch.stack([context] * len(W_query))


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_only_the_last_head(inputs, W_query, W_key, W_value):
    """One head's context vectors are returned (a `return` in the loop, or the last one's left over); collect them all."""
    for W_q, W_k, W_v in zip(W_query, W_key, W_value, strict=True):
        queries, keys, values = inputs @ W_q.T, inputs @ W_k.T, inputs @ W_v.T
        context = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
    return context


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_keys_as_values(inputs, W_query, W_key, W_value):
    """The weights are applied to the keys; they belong to the values, which W_value makes."""
    queries, keys = inputs @ W_query.mT, inputs @ W_key.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_queries_and_keys_swapped(inputs, W_query, W_key, W_value):
    """Queries and keys are swapped: row i of a head's scores should hold query i's, so the queries come first."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(keys @ queries.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_result_as_wide_as_keys(inputs, W_query, W_key, W_value):
    """The result is made as wide as the keys; values have a width of their own, d_v: (h, T, d_v)."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    context = inputs.new_zeros(len(W_query), len(inputs), W_key.shape[1])
    for head in range(len(W_query)):
        weights = torch.softmax(queries[head] @ keys[head].T / keys.shape[-1] ** 0.5, dim=-1)
        context[head] = weights @ values[head]
    return context


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_masked(inputs, W_query, W_key, W_value):
    """Later tokens are hidden; in this exercise every token sees every other one, without a mask."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    later = torch.ones(len(inputs), len(inputs), device=inputs.device).triu(diagonal=1).bool()
    scores = (queries @ keys.mT).masked_fill(later, -torch.inf)
    return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_other_widths")
def stacked_weights_returned(inputs, W_query, W_key, W_value):
    """The attention weights are returned; multiply them with the values to get the context vectors."""
    queries, keys = inputs @ W_query.mT, inputs @ W_key.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1)


@misconception("stacked_heads_attention", caught_by="test_large_scores_do_not_overflow")
def stacked_overflow(inputs, W_query, W_key, W_value):
    """exp overflows for large scores: subtract each row's maximum first (the weights stay the same), or use softmax."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    exponentials = torch.exp(queries @ keys.mT / keys.shape[-1] ** 0.5)
    return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("stacked_heads_attention", caught_by="test_gradients")
def stacked_weights_detached(inputs, W_query, W_key, W_value):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("stacked_heads_attention", caught_by="test_gradients")
def stacked_without_graph(inputs, W_query, W_key, W_value):
    """The result is outside of the graph (`torch.no_grad()`, `.detach()`, `.data`), so nothing can learn."""
    with torch.no_grad():
        queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
        return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_float64_stays_exact")
def stacked_in_float32(inputs, W_query, W_key, W_value):
    """Everything is turned to float32 (`.float()`), so float64 inputs lose digits; keep the inputs' dtype."""
    queries, keys, values = (inputs.float() @ W.float().mT for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_dtype_is_kept")
def stacked_in_float64(inputs, W_query, W_key, W_value):
    """The result is float64 whatever the inputs are; return it in the inputs' dtype."""
    queries, keys, values = (inputs.double() @ W.double().mT for W in (W_query, W_key, W_value))
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by="test_follows_device")
def stacked_left_on_the_cpu(inputs, W_query, W_key, W_value):
    """The heads are collected in a tensor on the CPU (torch.zeros without a device); use torch.stack, or x's device."""
    context = torch.zeros(len(W_query), len(inputs), W_value.shape[1], dtype=inputs.dtype)
    for head in range(len(W_query)):
        queries, keys, values = inputs @ W_query[head].T, inputs @ W_key[head].T, inputs @ W_value[head].T
        context[head] = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
    return context


@misconception("stacked_heads_attention", caught_by="test_inputs_are_unchanged")
def stacked_key_weights_changed(inputs, W_query, W_key, W_value):
    """W_key is changed in place (`/=`, a method ending in `_`), which is the caller's tensor; make a new one."""
    with torch.no_grad():
        W_key /= W_key.shape[1] ** 0.5
    queries, keys, values = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    return torch.softmax(queries @ keys.mT, dim=-1) @ values


@misconception("stacked_heads_attention", caught_by=FORBIDDEN)
def stacked_by_the_library(inputs, W_query, W_key, W_value):
    """The library's attention is called; write the steps yourself."""
    return F.scaled_dot_product_attention(inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT)


# --- split_heads ---


@misconception("split_heads", caught_by="test_other_shapes")
def cut_without_swapping(x, num_heads):
    """The numbers are counted off in memory order (reshape alone); cut into (b, T, h, hd), then transpose(1, 2)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_heads, num_tokens, d // num_heads)


@misconception("split_heads", caught_by="test_other_shapes")
def every_hth_number(x, num_heads):
    """A head gets every h-th number of a token; it should get a piece of neighbours: (b, T, h, hd), not (b, T, hd, h)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, d // num_heads, num_heads).permute(0, 3, 1, 2)


@misconception("split_heads", caught_by="test_other_shapes")
def heads_not_moved(x, num_heads):
    """The result is (b, T, h, hd): the vectors are cut, but tokens and heads still have to change places."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads)


@misconception("split_heads", caught_by="test_other_shapes")
def heads_before_the_batch(x, num_heads):
    """The heads come before the batch, (h, b, T, hd); the batch comes first: (b, h, T, hd)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads).permute(2, 0, 1, 3)


@misconception("split_heads", caught_by="test_other_shapes")
def widths_before_tokens(x, num_heads):
    """Tokens and widths are swapped, (b, h, hd, T); a row is a token: (b, h, T, hd)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads).permute(0, 2, 3, 1)


@misconception("split_heads", caught_by="test_other_shapes")
def heads_folded_into_the_batch(x, num_heads):
    """Heads and batch are one dimension, (b * h, T, hd); they stay apart: (b, h, T, hd)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2).flatten(0, 1)


@misconception("split_heads", caught_by="test_other_shapes")
def heads_in_a_tuple(x, num_heads):
    """The heads are in a tuple or list (chunk, split); stack them along dimension 1 into one tensor (b, h, T, hd)."""
    assert x.shape[-1] % num_heads == 0
    return x.chunk(num_heads, dim=-1)


@misconception("split_heads", caught_by="test_other_shapes")
def cut_between_tokens(x, num_heads):
    """The heads are cut between tokens, not within each token's vector: cut the last dimension, (b, T, h, hd)."""
    assert x.shape[-1] % num_heads == 0
    return torch.stack(x.chunk(num_heads, dim=1), dim=1)


@misconception("split_heads", caught_by="test_other_shapes")
def num_heads_taken_for_the_width(x, num_heads):
    """The pieces are num_heads wide; num_heads says how many there are, and each is d / num_heads wide."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, d // num_heads, num_heads).transpose(1, 2)


@misconception("split_heads", caught_by="test_other_shapes")
def always_two_heads(x, num_heads):
    """The vectors are always cut in two, as in the example; cut them into num_heads pieces."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, 2, d // 2).transpose(1, 2)


@misconception("split_heads", caught_by="test_other_shapes")
def swapped_before_cutting(x, num_heads):
    """Dimensions are swapped before the vectors are cut, which mixes tokens; cut first, (b, T, h, hd), then swap."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.transpose(1, 2).reshape(b, num_heads, num_tokens, d // num_heads)


@misconception("split_heads", caught_by="test_other_shapes")
def first_sequence_split(x, num_heads):
    """Only the first sequence of the batch is split; keep the batch as the first dimension."""
    _, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x[:1].reshape(1, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", caught_by="test_equal_sizes")
def split_and_squeezed(x, num_heads):
    """`squeeze()` drops every dimension of size 1, also a batch or a head of one; leave it out."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2).squeeze()


@misconception("split_heads", caught_by="test_refuses_what_cannot_be_split")
def refusal_left_to_reshape(x, num_heads):
    """An indivisible width ends in an accidental RuntimeError; check first, and raise ValueError (or use assert)."""
    b, num_tokens, d = x.shape
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", caught_by="test_refuses_what_cannot_be_split")
def rest_thrown_away(x, num_heads):
    """Where the width is not divisible the last numbers are thrown away silently; raise ValueError (or use assert)."""
    b, num_tokens, d = x.shape
    head_dim = d // num_heads
    return x[..., : num_heads * head_dim].reshape(b, num_tokens, num_heads, head_dim).transpose(1, 2)


@misconception("split_heads", caught_by="test_refuses_what_cannot_be_split")
def refusal_by_none(x, num_heads):
    """Where the width is not divisible, None is returned; raise ValueError (or use assert), which nobody overlooks."""
    b, num_tokens, d = x.shape
    if d % num_heads:
        return None
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", caught_by="test_refuses_what_cannot_be_split")
def refusal_by_a_type_error(x, num_heads):
    """A TypeError is raised for an indivisible width; its type is right, its value is not: raise ValueError."""
    b, num_tokens, d = x.shape
    if d % num_heads:
        raise TypeError("d must be divisible by num_heads")
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", caught_by="test_refuses_what_cannot_be_split")
def refusal_by_a_plain_exception(x, num_heads):
    """A plain Exception is raised for an indivisible width; a ValueError says more, and can be caught on its own."""
    b, num_tokens, d = x.shape
    if d % num_heads:
        raise Exception("d must be divisible by num_heads")
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", caught_by="test_gradients")
def split_detached(x, num_heads):
    """The pieces are taken out of the graph (`.detach()`, `.data`, `torch.tensor`), so no layer before can learn."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.detach().reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", caught_by="test_float64_stays_exact")
def split_in_float32(x, num_heads):
    """The pieces are float32 whatever the input is, so float64 loses digits; keep the input's dtype."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.float().reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", caught_by="test_follows_device")
def split_on_the_cpu(x, num_heads):
    """The pieces are copied into a tensor on the CPU (torch.zeros without a device); reshape the input itself."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    pieces = torch.zeros(b, num_heads, num_tokens, d // num_heads, dtype=x.dtype)
    for head, piece in enumerate(x.chunk(num_heads, dim=-1)):
        pieces[:, head] = piece
    return pieces


# --- multi_head_scores ---


@misconception("multi_head_scores", caught_by="test_other_shapes")
def head_scores_already_scaled(queries, keys):
    """The scores are already divided by the square root of the width; here they are the plain dot products."""
    return queries @ keys.mT / keys.shape[-1] ** 0.5


@misconception("multi_head_scores", caught_by="test_other_shapes")
def head_scores_already_softmaxed(queries, keys):
    """A softmax is applied; scores are the plain dot products, and softmax comes later."""
    return torch.softmax(queries @ keys.mT, dim=-1)


@misconception("multi_head_scores", caught_by="test_other_shapes")
def head_weights_at_once(queries, keys):
    """The scores are scaled and softmaxed, which makes weights of them; return the plain dot products."""
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1)


@misconception("multi_head_scores", caught_by="test_other_shapes")
def head_scores_already_masked(queries, keys):
    """The scores of later keys are already hidden; that is a step of its own, and these are all the dot products."""
    later = torch.ones(keys.shape[-2], keys.shape[-2], device=keys.device).triu(diagonal=1).bool()
    return (queries @ keys.mT).masked_fill(later, -torch.inf)


@misconception("multi_head_scores", caught_by="test_other_shapes")
def head_queries_and_keys_swapped(queries, keys):
    """Rows and columns are swapped: row i should hold query i's scores, so the queries come first in the product."""
    return keys @ queries.mT


@misconception("multi_head_scores", caught_by="test_equal_sizes")
def heads_and_tokens_transposed(queries, keys):
    """transpose(1, 2) swaps heads and tokens; the product needs the keys' last two dimensions swapped: (-2, -1)."""
    return queries @ keys.transpose(1, 2)


@misconception("multi_head_scores", caught_by="test_equal_sizes")
def batch_and_heads_transposed(queries, keys):
    """transpose(0, 1) swaps batch and heads; the product needs the keys' last two dimensions swapped: (-2, -1)."""
    return queries @ keys.transpose(0, 1)


@misconception("multi_head_scores", caught_by="test_equal_sizes")
def keys_not_transposed(queries, keys):
    """The keys are not transposed, so shapes fit only by luck; swap their last two dimensions: (-2, -1)."""
    return queries @ keys


@misconception("multi_head_scores", caught_by="test_other_shapes")
def keys_reversed(queries, keys):
    """`.T` reverses all four dimensions; swap just the last two with transpose(-2, -1)."""
    return queries @ keys.permute(3, 2, 1, 0)


@misconception("multi_head_scores", caught_by="test_other_shapes")
def keys_reshaped(queries, keys):
    """The keys are reshaped to (b, h, hd, T), which mixes their numbers; transpose(-2, -1) swaps the dimensions."""
    b, h, num_tokens, head_dim = keys.shape
    return queries @ keys.reshape(b, h, head_dim, num_tokens)


@misconception("multi_head_scores", caught_by="test_other_shapes")
def queries_transposed_instead(queries, keys):
    """The queries are transposed in place of the keys, which gives (hd, hd) a head; scores are (T, T)."""
    return queries.mT @ keys


@misconception("multi_head_scores", caught_by="test_other_shapes")
def heads_meet_each_other(queries, keys):
    """The heads are flattened into the tokens, so that queries meet keys of other heads; keep (b, h) as they are."""
    return queries.flatten(1, 2) @ keys.flatten(1, 2).mT


@misconception("multi_head_scores", caught_by="test_other_shapes")
def head_scores_summed(queries, keys):
    """The scores of all heads are summed into one; every head keeps its own: (b, h, T, T)."""
    return torch.einsum("bhqd,bhkd->bqk", queries, keys)


@misconception("multi_head_scores", caught_by="test_other_shapes")
def head_scores_averaged(queries, keys):
    """The scores of all heads are averaged into one; every head keeps its own: (b, h, T, T)."""
    return (queries @ keys.mT).mean(dim=1)


@misconception("multi_head_scores", caught_by="test_other_shapes")
def own_keys_only(queries, keys):
    """Each query meets only the key of its own token (an elementwise product); it should meet all: a matrix product."""
    return (queries * keys).sum(dim=-1)


@misconception("multi_head_scores", caught_by="test_other_shapes")
def keys_of_head_0(queries, keys):
    """Every head is scored against head 0's keys; each head has its own."""
    return queries @ keys[:, :1].mT


@misconception("multi_head_scores", caught_by="test_other_shapes")
def keys_of_the_first_sequence(queries, keys):
    """Every sequence of the batch is scored against the first one's keys; keep the batch dimension."""
    return queries @ keys[:1].mT


@misconception("multi_head_scores", caught_by="test_equal_sizes")
def head_scores_squeezed(queries, keys):
    """`squeeze()` drops every dimension of size 1, also a batch, head or token of one; leave it out."""
    return (queries @ keys.mT).squeeze()


@misconception("multi_head_scores", caught_by="test_gradients")
def head_keys_detached(queries, keys):
    """The keys are detached from the graph (`.detach()` or `.data`), so that W_key could never learn."""
    return queries @ keys.detach().mT


@misconception("multi_head_scores", caught_by="test_gradients")
def head_scores_without_graph(queries, keys):
    """The scores are outside of the graph (`torch.no_grad()`, `.data`, `.detach()`), so nothing can learn."""
    return (queries @ keys.mT).detach()


@misconception("multi_head_scores", caught_by="test_float64_stays_exact")
def head_scores_in_float32(queries, keys):
    """The scores are float32 whatever the inputs are (`.float()`), so float64 loses digits; keep the inputs' dtype."""
    return queries.float() @ keys.float().mT


@misconception("multi_head_scores", caught_by="test_dtype_is_kept")
def head_scores_in_float64(queries, keys):
    """The scores are float64 whatever the inputs are; keep the inputs' dtype."""
    return queries.double() @ keys.double().mT


@misconception("multi_head_scores", caught_by="test_inputs_are_unchanged")
def head_keys_transposed_in_place(queries, keys):
    """The keys are transposed in place (`transpose_`), which changes the caller's tensor; use `transpose`."""
    return queries @ keys.transpose_(-2, -1)


@misconception("multi_head_scores", caught_by="test_follows_device")
def head_scores_on_the_cpu(queries, keys):
    """The scores are collected in a tensor on the CPU (torch.zeros without a device); one product makes them all."""
    b, h, num_tokens, _ = queries.shape
    scores = torch.zeros(b, h, num_tokens, num_tokens, dtype=queries.dtype)
    for head in range(h):
        scores[:, head] = queries[:, head] @ keys[:, head].mT
    return scores


# --- merge_heads ---


@misconception("merge_heads", caught_by="test_worked_example")
def merged_without_swapping(x):
    """Numbers of different tokens end up in one row: swap heads and tokens back, transpose(1, 2), once, then merge."""
    b, h, num_tokens, head_dim = x.shape
    return x.reshape(b, num_tokens, h * head_dim)


@misconception("merge_heads", caught_by="test_worked_example")
def viewed_out_of_order(x):
    """`view` refuses a tensor whose dimensions were swapped; call `.contiguous()` after transpose, or use `reshape`."""
    b, h, num_tokens, head_dim = x.shape
    return x.transpose(1, 2).view(b, num_tokens, h * head_dim)


@misconception("merge_heads", caught_by="test_worked_example")
def heads_interleaved(x):
    """The heads' numbers take turns within a token; each head's numbers stay together, head 0's first."""
    return x.permute(0, 2, 3, 1).flatten(2)


@misconception("merge_heads", caught_by="test_worked_example")
def heads_behind_each_other(x):
    """The heads are put behind each other along the tokens, (b, h * T, hd); they belong side by side: (b, T, h * hd)."""
    return x.flatten(1, 2)


@misconception("merge_heads", caught_by="test_worked_example")
def swapped_but_not_merged(x):
    """The result is (b, T, h, hd): the last two dimensions still have to become one of width h * hd."""
    return x.transpose(1, 2)


@misconception("merge_heads", caught_by="test_worked_example")
def merged_by_average(x):
    """The heads are averaged; they are put side by side, so that out_proj can mix them: (b, T, h * hd)."""
    return x.mean(dim=1)


@misconception("merge_heads", caught_by="test_worked_example")
def merged_by_sum(x):
    """The heads are summed; they are put side by side, so that out_proj can mix them: (b, T, h * hd)."""
    return x.sum(dim=1)


@misconception("merge_heads", caught_by="test_other_shapes")
def batch_mixed_into_tokens(x):
    """Tokens of different sequences are mixed: the batch stays the first dimension, only heads and tokens swap."""
    b, h, num_tokens, head_dim = x.shape
    return x.permute(2, 0, 1, 3).reshape(b, num_tokens, h * head_dim)


@misconception("merge_heads", caught_by="test_worked_example")
def tokens_before_the_batch(x):
    """The tokens come before the batch, (T, b, h * hd); the batch comes first: (b, T, h * hd)."""
    return x.permute(2, 0, 1, 3).flatten(2)


@misconception("merge_heads", caught_by="test_worked_example")
def swapped_tokens_and_widths(x):
    """transpose(2, 3) swaps tokens and widths; it is heads and tokens, transpose(1, 2), that change places."""
    b, h, num_tokens, head_dim = x.shape
    return x.transpose(2, 3).reshape(b, num_tokens, h * head_dim)


@misconception("merge_heads", caught_by="test_worked_example")
def heads_in_reverse(x):
    """The heads stand in reverse order; head 0's numbers come first in every token."""
    return x.flip(1).transpose(1, 2).flatten(2)


@misconception("merge_heads", caught_by="test_worked_example")
def head_0_repeated(x):
    """Head 0's numbers are repeated in the places of the other heads; take x[:, i] for head i."""
    return torch.cat([x[:, 0]] * x.shape[1], dim=-1)


@misconception("merge_heads", caught_by="test_worked_example")
def first_sequence_merged(x):
    """Only the first sequence of the batch is merged; keep the batch as the first dimension."""
    return x[:1].transpose(1, 2).flatten(2)


@misconception("merge_heads", caught_by="test_one_head_or_one_token")
def merged_and_squeezed(x):
    """`squeeze()` drops every dimension of size 1, also a batch or a token of one; leave it out."""
    return x.transpose(1, 2).flatten(2).squeeze()


@misconception("merge_heads", caught_by="test_gradients")
def merged_detached(x):
    """The result is taken out of the graph (`.detach()`, `.data`, `torch.tensor`), so no head can learn."""
    return x.detach().transpose(1, 2).flatten(2)


@misconception("merge_heads", caught_by="test_float64_stays_exact")
def merged_in_float32(x):
    """The result is float32 whatever the input is, so float64 loses digits; keep the input's dtype."""
    return x.float().transpose(1, 2).flatten(2)


@misconception("merge_heads", caught_by="test_follows_device")
def merged_on_the_cpu(x):
    """The heads are copied into a tensor on the CPU (torch.zeros without a device); torch.cat joins them anywhere."""
    b, h, num_tokens, head_dim = x.shape
    merged = torch.zeros(b, num_tokens, h * head_dim, dtype=x.dtype)
    for head in range(h):
        merged[..., head * head_dim : (head + 1) * head_dim] = x[:, head]
    return merged


@misconception("merge_heads", caught_by="test_input_is_unchanged")
def swapped_in_place(x):
    """The input is transposed in place (`transpose_`), which changes the caller's tensor; use `transpose`."""
    return x.transpose_(1, 2).flatten(2)


@misconception("merge_heads", caught_by="test_other_shapes")
def worked_example_pasted(x):
    """The worked example's numbers are returned whatever the input is; compute the result from x."""
    rows = [
        [-0.1674, -0.5873, -0.3776, -0.2045, 0.2991, 0.2583],
        [-0.1674, -0.5863, -0.3775, -0.2103, 0.3089, 0.2634],
        [-0.1673, -0.5880, -0.3772, -0.2006, 0.2925, 0.2540],
    ]
    return torch.tensor([rows, rows])

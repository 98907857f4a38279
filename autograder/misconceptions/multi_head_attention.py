"""Unit 4: what goes wrong in attention with several heads."""

import torch
import torch.nn.functional as F
from torch import nn

from ..catalogue import FORBIDDEN, misconception

# --- stacked_heads_attention ---


@misconception("stacked_heads_attention", caught_by="test_equal_widths")
def stacked_weights_transposed_to_fit(inputs, W_query, W_key, W_value):
    """The weights are transposed only where shapes force it; stored (h, d_out, d_in), always transpose them."""
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
    """One head's context vectors are returned (`return` in the loop, or the last one left over); collect them all."""
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
    """A head gets every h-th number of a token; it gets a piece of neighbours: (b, T, h, hd), not (b, T, hd, h)."""
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
    """The heads are put behind each other along the tokens, (b, h * T, hd); put them side by side: (b, T, h * hd)."""
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


# --- MultiHeadAttention ---


class RightHeads(nn.Module):
    """Every step as it should be; the entries that build on it get one of them wrong."""

    projections = ("W_query", "W_key", "W_value")

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        for name in self.projections:
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], -torch.inf)

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=-1)

    def attend(self, queries, keys, values):
        return self.dropout(self.weigh(self.hide(queries @ keys.mT))) @ values

    def merge(self, context):
        return context.transpose(1, 2).flatten(2)

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.out_proj(self.merge(self.attend(queries, keys, values)))


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class SplitWithoutSwapping(RightHeads):
    """The heads are counted off in memory order, which mixes tokens; cut into (b, T, h, hd), then transpose(1, 2)."""

    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], self.head_dim)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class HeadsAndTokensNotSwapped(RightHeads):
    """Heads and tokens are never swapped, so heads meet heads within a token; transpose(1, 2) before the scores."""

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.head_dim))

    def hide(self, scores):
        return scores

    def merge(self, context):
        return context.flatten(2)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class EveryHthNumber(RightHeads):
    """A head gets every h-th number of a token; it gets a piece of neighbours: (b, T, h, hd), not (b, T, hd, h)."""

    def split(self, x):
        return x.unflatten(-1, (self.head_dim, self.num_heads)).permute(0, 3, 1, 2)

    def merge(self, context):
        return context.permute(0, 2, 3, 1).flatten(2)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class HeadsAndWidthExchanged(RightHeads):
    """Number and width of the heads are exchanged: there are num_heads of them, each d_out / num_heads wide."""

    def split(self, x):
        return x.unflatten(-1, (self.head_dim, self.num_heads)).transpose(1, 2)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class OneWideHead(RightHeads):
    """The vectors are never split, so there is one head of width d_out; split them into num_heads."""

    def split(self, x):
        return x.unsqueeze(1)

    def weigh(self, scores):
        return torch.softmax(scores / (self.num_heads * self.head_dim) ** 0.5, dim=-1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MergedWithoutSwapping(RightHeads):
    """The heads are merged without being swapped back, which mixes tokens; transpose(1, 2), once, then reshape."""

    def merge(self, context):
        return context.reshape(context.shape[0], context.shape[2], -1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MergedOutOfOrder(RightHeads):
    """`view` refuses a tensor whose dimensions were swapped; call `.contiguous()` after transpose, or use `reshape`."""

    def merge(self, context):
        return context.transpose(1, 2).view(context.shape[0], context.shape[2], -1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MergedInterleaved(RightHeads):
    """The merged heads' numbers take turns; each head's numbers stay together, head 0's first."""

    def merge(self, context):
        return context.permute(0, 2, 3, 1).flatten(2)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MergedInReverse(RightHeads):
    """The merged heads stand in reverse order; head 0's numbers come first."""

    def merge(self, context):
        return context.flip(1).transpose(1, 2).flatten(2)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class Head0Repeated(RightHeads):
    """Head 0's result is repeated in the places of the other heads; each head attends on its own."""

    def merge(self, context):
        return torch.cat([context[:, 0]] * self.num_heads, dim=-1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class KeysOfHead0(RightHeads):
    """Every head is scored against head 0's keys; each head has its own."""

    def attend(self, queries, keys, values):
        return super().attend(queries, keys[:, :1], values)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class HeadsMeetEachOther(RightHeads):
    """Scores are averaged over the heads, so that all attend alike; each head has its own scores: (b, h, T, T)."""

    def attend(self, queries, keys, values):
        scores = (queries @ keys.mT).mean(dim=1, keepdim=True)
        return self.dropout(self.weigh(self.hide(scores))) @ values


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class FirstSequenceOnly(RightHeads):
    """Every sequence of the batch attends to the first one's keys; keep the batch dimension."""

    def attend(self, queries, keys, values):
        return super().attend(queries, keys[:1], values)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class HeadsNotScaled(RightHeads):
    """The scores are not scaled: divide them by the square root of head_dim before the softmax."""

    def weigh(self, scores):
        return torch.softmax(scores, dim=-1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class DividedByHeadDim(RightHeads):
    """The scores are divided by head_dim (or by its square root twice); divide by its square root."""

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim, dim=-1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class ScaledByTheRootOfDOut(RightHeads):
    """The scores are scaled by the root of d_out, all heads together; scale by that of head_dim, one head's width."""

    def weigh(self, scores):
        return torch.softmax(scores / (self.num_heads * self.head_dim) ** 0.5, dim=-1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class DividedByDOut(RightHeads):
    """The scores are divided by d_out; divide by the square root of head_dim, the width of one head."""

    def weigh(self, scores):
        return torch.softmax(scores / (self.num_heads * self.head_dim), dim=-1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class ScaledByTheRootOfTokens(RightHeads):
    """The scores are scaled by the root of the number of tokens; scale by that of head_dim, the width of one head."""

    def weigh(self, scores):
        return torch.softmax(scores / scores.shape[-1] ** 0.5, dim=-1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class ScaledByTheRootOfHeads(RightHeads):
    """The scores are scaled by the root of the number of heads; scale by that of head_dim, the width of one head."""

    def weigh(self, scores):
        return torch.softmax(scores / self.num_heads**0.5, dim=-1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class SoftmaxOverTheQueries(RightHeads):
    """The softmax runs over the queries (dim=-2), so the columns sum to 1; over the keys, dim=-1, the rows do."""

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=-2)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class SoftmaxOverTheHeads(RightHeads):
    """The softmax runs over the heads (dim=1); each head's weights sum to 1 over its keys: dim=-1."""

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=1)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class NoSoftmax(RightHeads):
    """The softmax is missing: the scaled scores are used as weights, with 0 for later keys."""

    def weigh(self, scores):
        return (scores / self.head_dim**0.5).masked_fill(scores == -torch.inf, 0.0)


@misconception("MultiHeadAttention", caught_by="test_large_scores_do_not_overflow")
class ExponentialsOverflow(RightHeads):
    """exp overflows for large scores: subtract each row's maximum first (the weights stay the same), or use softmax."""

    def weigh(self, scores):
        exponentials = torch.exp(scores / self.head_dim**0.5)
        return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MaskMissing(RightHeads):
    """Tokens see later ones: before the softmax, replace the scores of later keys by -inf."""

    def hide(self, scores):
        return scores


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MaskHidesTheTokenItself(RightHeads):
    """The mask hides each token from itself, so that the first sees nothing (NaN); it starts above the diagonal."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=0).bool())


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MaskLetsTheNextTokenThrough(RightHeads):
    """Each token sees the next one: the mask starts one above the diagonal, triu(diagonal=1)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(diagonal=2).bool())


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MaskHidesEarlierTokens(RightHeads):
    """Earlier tokens are hidden and later ones seen; it is the other way round: hide what is above the diagonal."""

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]].T, -torch.inf)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MaskTurnedRound(RightHeads):
    """What should be seen is hidden, and later tokens are seen; turn the mask round (`~mask`, or tril for triu)."""

    def hide(self, scores):
        return scores.masked_fill(~self.mask[: scores.shape[-2], : scores.shape[-1]], -torch.inf)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MaskAfterSoftmax(RightHeads):
    """Weights of later keys are set to 0 after the softmax, so rows no longer sum to 1; put -inf into the scores."""

    def hide(self, scores):
        return scores

    def weigh(self, scores):
        return super().weigh(scores).masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], 0.0)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MaskedWithZeros(RightHeads):
    """Scores of later keys become 0, which softmax still gives weight; replace them by -inf."""

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], 0.0)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class MaskedWithMinusOne(RightHeads):
    """The mask is subtracted as 0 and 1, which hardly lowers the scores of later keys; replace them by -inf."""

    def hide(self, scores):
        return scores - self.mask[: scores.shape[-2], : scores.shape[-1]].to(scores.dtype)


@misconception("MultiHeadAttention", caught_by="test_large_scores_do_not_overflow")
class FiniteFillLeaks(RightHeads):
    """Later keys get a score like -100, which large scores fall below, and are then seen; use -inf."""

    def hide(self, scores):
        return scores.masked_fill(self.mask[: scores.shape[-2], : scores.shape[-1]], -100.0)


@misconception("MultiHeadAttention", caught_by="test_shorter_sequences")
class ContextLengthForTokens(RightHeads):
    """context_length stands where the number of tokens belongs; cut the mask to the sequence: mask[:T, :T]."""

    def hide(self, scores):
        return scores.masked_fill(self.mask, -torch.inf)


@misconception("MultiHeadAttention", caught_by="test_shorter_sequences")
class LastRowsOfTheMask(RightHeads):
    """A shorter sequence gets the wrong part of the mask; take its first T rows and columns: mask[:T, :T]."""

    def hide(self, scores):
        return scores.masked_fill(self.mask[-scores.shape[-2] :, : scores.shape[-1]], -torch.inf)


@misconception("MultiHeadAttention", caught_by="test_follows_device")
class MaskIsNoBuffer(RightHeads):
    """A tensor that the module makes, such as its mask, stays on the CPU when it moves; register it as a buffer."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.mask
        self.mask = torch.ones(context_length, context_length).triu(diagonal=1).bool()


@misconception("MultiHeadAttention", caught_by="test_parameters")
class MaskIsAParameter(RightHeads):
    """The mask is a parameter, which counts as something to learn; register it as a buffer."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.mask
        self.mask = nn.Parameter(torch.ones(context_length, context_length).triu(1).bool(), requires_grad=False)


@misconception("MultiHeadAttention", caught_by="test_no_dropout_in_evaluation")
class MaskedInTrainingOnly(RightHeads):
    """Later tokens are hidden in training only; the mask belongs to the model, so it stays in evaluation."""

    def hide(self, scores):
        return super().hide(scores) if self.training else scores


@misconception("MultiHeadAttention", caught_by="test_dropout_in_training")
class DropoutIgnored(RightHeads):
    """Nothing is dropped in training: apply nn.Dropout(dropout) to the weights after the softmax."""

    def attend(self, queries, keys, values):
        return self.weigh(self.hide(queries @ keys.mT)) @ values


@misconception("MultiHeadAttention", caught_by="test_no_dropout_in_evaluation")
class DropoutAlwaysOn(RightHeads):
    """Weights are dropped in evaluation too; nn.Dropout stops by itself, F.dropout needs training=self.training."""

    def attend(self, queries, keys, values):
        return F.dropout(self.weigh(self.hide(queries @ keys.mT)), self.dropout.p) @ values


@misconception("MultiHeadAttention", caught_by="test_no_dropout_in_evaluation")
class DropoutInEvaluationOnly(RightHeads):
    """Weights are dropped in evaluation and not in training; it is the other way round."""

    def attend(self, queries, keys, values):
        weights = self.weigh(self.hide(queries @ keys.mT))
        return F.dropout(weights, self.dropout.p, training=not self.training) @ values


@misconception("MultiHeadAttention", caught_by="test_dropout_in_training")
class DropoutNotRescaled(RightHeads):
    """The kept weights stay as they are; divide them by 1 - p, as nn.Dropout does, so that their sum stays the same."""

    def attend(self, queries, keys, values):
        weights = self.weigh(self.hide(queries @ keys.mT))
        if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout.p)
        return weights @ values


@misconception("MultiHeadAttention", caught_by="test_dropout_in_training")
class DropoutRenormalised(RightHeads):
    """The kept weights are made to sum to 1 in each row; dropout divides them by 1 - p and leaves it at that."""

    def attend(self, queries, keys, values):
        weights = self.dropout(self.weigh(self.hide(queries @ keys.mT)))
        return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9) @ values


@misconception("MultiHeadAttention", caught_by="test_dropout_in_training")
class DroppedTwice(RightHeads):
    """Dropout is applied to the weights twice, so that more than p is dropped; once is enough."""

    def attend(self, queries, keys, values):
        return self.dropout(self.dropout(self.weigh(self.hide(queries @ keys.mT)))) @ values


@misconception("MultiHeadAttention", caught_by="test_dropout_in_training")
class DropoutKeepsP(RightHeads):
    """p and 1 - p are exchanged: `dropout` is the probability with which a weight is dropped, not kept."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.dropout = nn.Dropout(1 - dropout)


@misconception("MultiHeadAttention", caught_by="test_dropout_in_training")
class DropoutOfAHalf(RightHeads):
    """Dropout has a probability of its own (nn.Dropout() drops a half); pass the argument: nn.Dropout(dropout)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.dropout = nn.Dropout()


@misconception("MultiHeadAttention", caught_by="test_dropout_in_training")
class DropoutOnTheScores(RightHeads):
    """Scores are dropped, and a score of 0 still gets weight; drop the weights, after the softmax."""

    def attend(self, queries, keys, values):
        return self.weigh(self.hide(self.dropout(queries @ keys.mT))) @ values


@misconception("MultiHeadAttention", caught_by="test_dropout_in_training")
class DropoutOnNumbers(RightHeads):
    """Dropout falls on the values, the context vectors or the output; it belongs on the weights, after the softmax."""

    def attend(self, queries, keys, values):
        return self.dropout(self.weigh(self.hide(queries @ keys.mT)) @ values)


@misconception("MultiHeadAttention", caught_by="test_dropout_in_training")
class DropoutSharedByHeads(RightHeads):
    """All heads drop the same weights, by one mask of (T, T); apply dropout to all the weights, (b, h, T, T)."""

    def attend(self, queries, keys, values):
        weights = self.weigh(self.hide(queries @ keys.mT))
        return weights * self.dropout(torch.ones_like(weights[0, 0])) @ values


@misconception("MultiHeadAttention", caught_by="test_each_call_drops_anew")
class SeedSetInForward(RightHeads):
    """A seed is set in forward, so that every call drops the same weights; leave seeds to the caller."""

    def forward(self, x):
        torch.manual_seed(123)
        return super().forward(x)


@misconception("MultiHeadAttention", caught_by="test_seeds_matter")
class SeedSetWhenBuilt(RightHeads):
    """A seed is set inside __init__, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        torch.manual_seed(123)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class OutProjForgotten(RightHeads):
    """out_proj is made and never used; apply it to the merged heads, at the end."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.merge(self.attend(queries, keys, values))


@misconception("MultiHeadAttention", caught_by="test_parameters")
class OutProjNotMade(RightHeads):
    """There is no out_proj; make the layer nn.Linear(d_out, d_out) and apply it to the merged heads."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Identity()


@misconception("MultiHeadAttention", caught_by="test_parameters")
class OutProjWithoutBias(RightHeads):
    """out_proj has no bias; it has one whatever qkv_bias says: nn.Linear(d_out, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj.bias = None


@misconception("MultiHeadAttention", caught_by="test_parameters")
class OutProjBiasLikeTheOthers(RightHeads):
    """out_proj takes its bias from qkv_bias, which is for the three projections; out_proj always has one."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        if not qkv_bias:
            self.out_proj.bias = None


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class OutProjBiasNotUsed(RightHeads):
    """Only out_proj's weight is used, without its bias; call the layer: self.out_proj(merged)."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.merge(self.attend(queries, keys, values)) @ self.out_proj.weight.T


@misconception("MultiHeadAttention", caught_by="test_parameters")
class OutProjForEachHead(RightHeads):
    """out_proj is as narrow as one head; it goes from d_out to d_out, so that it can mix what all heads found."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Linear(self.head_dim, self.head_dim)

    def merge(self, context):
        return context

    def forward(self, x):
        return super().forward(x).transpose(1, 2).flatten(2)


@misconception("MultiHeadAttention", caught_by="test_bias")
class QkvBiasIgnored(RightHeads):
    """qkv_bias is ignored: the projections never have a bias; pass bias=qkv_bias to each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)


@misconception("MultiHeadAttention", caught_by="test_parameters")
class QkvBiasAlwaysOn(RightHeads):
    """The projections have a bias that was not asked for: qkv_bias is False by default, and goes to each as bias."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, True)


@misconception("MultiHeadAttention", caught_by="test_bias")
class QkvBiasNotUsed(RightHeads):
    """Only the projections' weights are used, without their bias; call the layers: self.W_query(x)."""

    def project(self, x):
        return x @ self.W_query.weight.T, x @ self.W_key.weight.T, x @ self.W_value.weight.T


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class QueriesAndKeysSwapped(RightHeads):
    """Queries and keys are swapped: row i of a head's scores should hold query i's, so the queries come first."""

    def project(self, x):
        return self.W_key(x), self.W_query(x), self.W_value(x)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class KeysUsedAsValues(RightHeads):
    """The weights are applied to the keys; they belong to the values, W_value(x)."""

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_key(x)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class QueriesUsedAsKeys(RightHeads):
    """The queries are scored against themselves; score them against the keys, W_key(x)."""

    def project(self, x):
        return self.W_query(x), self.W_query(x), self.W_value(x)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class WeightsTransposed(RightHeads):
    """The weights are transposed before they meet the values; each row already belongs to one query."""

    def attend(self, queries, keys, values):
        return self.weigh(self.hide(queries @ keys.mT)).mT @ values


@misconception("MultiHeadAttention", caught_by="test_seed_123")
class OutProjMadeFirst(RightHeads):
    """out_proj is created before the projections; under a fixed seed the order is W_query, W_key, W_value, out_proj."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        out_proj = nn.Linear(d_out, d_out)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = out_proj


@misconception("MultiHeadAttention", caught_by="test_seed_123")
class KeysMadeFirst(RightHeads):
    """W_key is created before W_query; under a fixed seed the order is W_query, W_key, W_value, out_proj."""

    projections = ("W_key", "W_query", "W_value")


@misconception("MultiHeadAttention", caught_by="test_seed_123")
class ValuesMadeFirst(RightHeads):
    """W_value is created before the others; under a fixed seed the order is W_query, W_key, W_value, out_proj."""

    projections = ("W_value", "W_query", "W_key")


@misconception("MultiHeadAttention", caught_by="test_seed_123")
class LayersStartedAnew(RightHeads):
    """The layers' weights are drawn a second time (nn.init); leave them as nn.Linear draws them."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        for name in (*self.projections, "out_proj"):
            nn.init.xavier_uniform_(getattr(self, name).weight)


@misconception("MultiHeadAttention", caught_by="test_parameters")
class EveryHeadAsWideAsDOut(RightHeads):
    """Every head is as wide as d_out; the heads share it, so that each is d_out / num_heads wide."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out * num_heads, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Linear(d_out * num_heads, d_out)


@misconception("MultiHeadAttention", caught_by="test_parameters")
class LayersInAList(RightHeads):
    """The projections stand in a plain list, where no optimizer finds them; assign each to self."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.layers = [self.W_query, self.W_key, self.W_value]
        del self.W_query, self.W_key, self.W_value

    def project(self, x):
        return [layer(x) for layer in self.layers]


@misconception("MultiHeadAttention", caught_by="test_parameters")
class LayersForEachHead(nn.Module):
    """Each head has layers of its own; here all heads share W_query, W_key and W_value, and get a piece of each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.W_query, self.W_key, self.W_value = (
            nn.ModuleList(nn.Linear(d_in, d_out // num_heads, bias=qkv_bias) for _ in range(num_heads))
            for _ in range(3)
        )
        self.out_proj = nn.Linear(d_out, d_out)
        self.p = dropout

    def forward(self, x):
        p, heads = self.p if self.training else 0.0, zip(self.W_query, self.W_key, self.W_value, strict=True)
        found = [F.scaled_dot_product_attention(q(x), k(x), v(x), dropout_p=p, is_causal=True) for q, k, v in heads]
        return self.out_proj(torch.cat(found, dim=-1))


@misconception("MultiHeadAttention", caught_by="test_parameters")
class MatricesForLayers(RightHeads):
    """The projections are nn.Parameter matrices; make them nn.Linear layers."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.W_query, self.W_key, self.W_value
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def project(self, x):
        return x @ self.W_query, x @ self.W_key, x @ self.W_value


@misconception("MultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class WeightsFrozen(RightHeads):
    """No gradient reaches the projections: they are frozen (requires_grad=False) or detached (`.detach()`, `.data`)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        for name in self.projections:
            getattr(self, name).requires_grad_(False)


@misconception("MultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightHeads):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def weigh(self, scores):
        return super().weigh(scores).detach()


@misconception("MultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class ValuesDetached(RightHeads):
    """The values are detached (`.detach()`, `.data`), so no gradient reaches W_value."""

    def project(self, x):
        return self.W_query(x), self.W_key(x), self.W_value(x).detach()


@misconception("MultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class ContextDetached(RightHeads):
    """The context vectors are detached, so only out_proj can learn; leave out `.detach()`, `.data` and no_grad."""

    def merge(self, context):
        return super().merge(context).detach()


@misconception("MultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class InputDetached(RightHeads):
    """The input is detached, so that no layer before this module could learn; use x as it is."""

    def forward(self, x):
        return super().forward(x.detach())


@misconception("MultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class ForwardWithoutGraph(RightHeads):
    """forward runs without a graph (`torch.no_grad()`) or detaches its result, so nothing can learn."""

    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


@misconception("MultiHeadAttention", caught_by="test_refuses_what_cannot_be_split")
class NothingRefused(RightHeads):
    """A d_out that num_heads does not divide is not refused when the module is built; raise ValueError in __init__."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, 1, qkv_bias)
        self.num_heads, self.head_dim = num_heads, d_out // num_heads


@misconception("MultiHeadAttention", caught_by="test_refuses_what_cannot_be_split")
class RefusedByATypeError(RightHeads):
    """An indivisible d_out raises TypeError; its type is right, its value is not: raise ValueError (or use assert)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        if d_out % num_heads != 0:
            raise TypeError("d_out must be divisible by num_heads")
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class DInMustBeDivisible(RightHeads):
    """d_in is checked for divisibility; it is d_out that is split into heads, and d_in may be any width."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        assert d_in % num_heads == 0, "d_in must be divisible by num_heads"
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@misconception("MultiHeadAttention", caught_by="test_float64_stays_exact")
class ScoresInFloat32(RightHeads):
    """The weights are computed in float32 whatever the input is, so float64 loses digits; leave the dtype alone."""

    def weigh(self, scores):
        return super().weigh(scores.float()).to(scores.dtype)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class HalfPrecisionInside(RightHeads):
    """The weights are computed in half precision, which has three digits; leave the dtype alone."""

    def weigh(self, scores):
        return super().weigh(scores.half()).to(scores.dtype)


@misconception("MultiHeadAttention", caught_by="test_dtype_is_kept")
class ResultInFloat64(RightHeads):
    """The result is float64 whatever the input is; keep the input's dtype."""

    def forward(self, x):
        return super().forward(x).double()


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class DimensionsSqueezed(RightHeads):
    """`squeeze()` drops every dimension of size 1, also a batch or a token of one; leave it out."""

    def forward(self, x):
        return super().forward(x).squeeze()


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class HeadsReturnedApart(RightHeads):
    """The heads are returned apart, (b, h, T, hd); merge them, (b, T, d_out), and apply out_proj."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.attend(queries, keys, values)


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class WeightsReturned(RightHeads):
    """The attention weights are returned; multiply them with the values, merge the heads, apply out_proj."""

    def forward(self, x):
        queries, keys, _ = (self.split(projected) for projected in self.project(x))
        return self.weigh(self.hide(queries @ keys.mT))


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class ResultInATuple(RightHeads):
    """The result is a tuple, of context vectors and weights; return the context vectors alone."""

    def forward(self, x):
        return super().forward(x), None


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class InputAdded(RightHeads):
    """The input is added to the result (a residual connection); that belongs to the block around this module."""

    def forward(self, x):
        merged = super().forward(x)
        return merged + x[..., : merged.shape[-1]]


@misconception("MultiHeadAttention", caught_by="test_inputs_are_unchanged")
class InputOverwritten(RightHeads):
    """The input's memory is written into (`x[...] =`, `+=`, a method ending in `_`); make new tensors instead."""

    def forward(self, x):
        result = super().forward(x)
        x.data[..., : result.shape[-1]] = result.detach()
        return result


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class LayersMadeInForward(RightHeads):
    """The projections are made anew in forward, with new random weights each time; make them once, in __init__."""

    def project(self, x):
        return [
            nn.Linear(x.shape[-1], layer.out_features).to(x)(x) for layer in (self.W_query, self.W_key, self.W_value)
        ]


@misconception("MultiHeadAttention", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightHeads):
    """The worked example's numbers are returned whatever the input is; compute them."""

    def forward(self, x):
        rows = [
            [0.3190, 0.4858],
            [0.2943, 0.3897],
            [0.2856, 0.3593],
            [0.2693, 0.3873],
            [0.2639, 0.3928],
            [0.2575, 0.4028],
        ]
        return torch.tensor([rows, rows])


# --- OptimizedMultiHeadAttention ---


class RightOptimized(RightHeads):
    """Every step as it should be. A mistake that MultiHeadAttention knows too keeps its sentence."""

    projections = ("W_query", "W_key")

    def project(self, x):
        return self.W_query(x), self.W_key(x), x


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedSplitWithoutSwapping(SplitWithoutSwapping, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedEveryHthNumber(EveryHthNumber, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedHeadsAndWidthExchanged(HeadsAndWidthExchanged, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedOneWideHead(OneWideHead, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMergedWithoutSwapping(MergedWithoutSwapping, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMergedOutOfOrder(MergedOutOfOrder, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMergedInterleaved(MergedInterleaved, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedHead0Repeated(Head0Repeated, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedFirstSequenceOnly(FirstSequenceOnly, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedHeadsNotScaled(HeadsNotScaled, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedDividedByHeadDim(DividedByHeadDim, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedScaledByTheRootOfDOut(ScaledByTheRootOfDOut, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedScaledByTheRootOfTokens(ScaledByTheRootOfTokens, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedSoftmaxOverTheQueries(SoftmaxOverTheQueries, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedSoftmaxOverTheHeads(SoftmaxOverTheHeads, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_large_scores_do_not_overflow")
class OptimizedExponentialsOverflow(ExponentialsOverflow, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMaskMissing(MaskMissing, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMaskHidesTheTokenItself(MaskHidesTheTokenItself, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMaskLetsTheNextTokenThrough(MaskLetsTheNextTokenThrough, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMaskHidesEarlierTokens(MaskHidesEarlierTokens, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMaskTurnedRound(MaskTurnedRound, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMaskAfterSoftmax(MaskAfterSoftmax, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedMaskedWithZeros(MaskedWithZeros, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_large_scores_do_not_overflow")
class OptimizedFiniteFillLeaks(FiniteFillLeaks, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_shorter_sequences")
class OptimizedContextLengthForTokens(ContextLengthForTokens, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_follows_device")
class OptimizedMaskIsNoBuffer(MaskIsNoBuffer, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_parameters")
class OptimizedMaskIsAParameter(MaskIsAParameter, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_no_dropout_in_evaluation")
class OptimizedMaskedInTrainingOnly(MaskedInTrainingOnly, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_dropout_in_training")
class OptimizedDropoutIgnored(DropoutIgnored, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_no_dropout_in_evaluation")
class OptimizedDropoutAlwaysOn(DropoutAlwaysOn, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_dropout_in_training")
class OptimizedDropoutNotRescaled(DropoutNotRescaled, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_dropout_in_training")
class OptimizedDroppedTwice(DroppedTwice, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_dropout_in_training")
class OptimizedDropoutKeepsP(DropoutKeepsP, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_dropout_in_training")
class OptimizedDropoutOnTheScores(DropoutOnTheScores, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_dropout_in_training")
class OptimizedDropoutOnNumbers(DropoutOnNumbers, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_each_call_drops_anew")
class OptimizedSeedSetInForward(SeedSetInForward, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_seeds_matter")
class OptimizedSeedSetWhenBuilt(SeedSetWhenBuilt, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedOutProjForgotten(OutProjForgotten, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_parameters")
class OptimizedOutProjNotMade(OutProjNotMade, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_parameters")
class OptimizedOutProjWithoutBias(OutProjWithoutBias, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_bias")
class OptimizedQkvBiasIgnored(QkvBiasIgnored, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_parameters")
class OptimizedQkvBiasAlwaysOn(QkvBiasAlwaysOn, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedWeightsTransposed(WeightsTransposed, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class OptimizedAttentionWeightsDetached(AttentionWeightsDetached, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class OptimizedContextDetached(ContextDetached, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class OptimizedForwardWithoutGraph(ForwardWithoutGraph, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_refuses_what_cannot_be_split")
class OptimizedNothingRefused(NothingRefused, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_float64_stays_exact")
class OptimizedScoresInFloat32(ScoresInFloat32, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_dtype_is_kept")
class OptimizedResultInFloat64(ResultInFloat64, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedDimensionsSqueezed(DimensionsSqueezed, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedWeightsReturned(WeightsReturned, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedInputAdded(InputAdded, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_parameters")
class OptimizedProjectsValues(RightHeads):
    """W_value is still there and makes the values; leave it out: the input itself, split into heads, is the value."""

    pass


@misconception("OptimizedMultiHeadAttention", caught_by="test_parameters")
class OptimizedKeepsWValue(RightOptimized):
    """W_value is still made, though nothing uses it; leave the layer out."""

    projections = ("W_query", "W_key", "W_value")


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedKeysAsValues(RightOptimized):
    """The keys are used as values; the value is the input itself, split into heads."""

    def project(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return queries, keys, keys


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedQueriesAsValues(RightOptimized):
    """The queries are used as values; the value is the input itself, split into heads."""

    def project(self, x):
        queries, keys = self.W_query(x), self.W_key(x)
        return queries, keys, queries


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedInputAsKeys(RightOptimized):
    """The input is used as key and W_key makes the values; it is the other way round."""

    def project(self, x):
        return self.W_query(x), x, self.W_key(x)


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedValuesNotSplit(RightOptimized):
    """Every head gets the whole input as its values, and the heads are averaged; split the input like the queries."""

    def forward(self, x):
        queries, keys = self.split(self.W_query(x)), self.split(self.W_key(x))
        return self.out_proj(self.attend(queries, keys, x.unsqueeze(1)).mean(dim=1))


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedValuesOutOfOrder(RightOptimized):
    """The values are cut in memory order, which mixes tokens; split the input like the queries."""

    def attend(self, queries, keys, values):
        values = values.transpose(1, 2).reshape(values.shape)
        return super().attend(queries, keys, values)


@misconception("OptimizedMultiHeadAttention", caught_by="test_context_vectors")
class OptimizedQueriesAndKeysSwapped(RightOptimized):
    """Queries and keys are swapped: row i of a head's scores should hold query i's, so the queries come first."""

    def project(self, x):
        return self.W_key(x), self.W_query(x), x


@misconception("OptimizedMultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class OptimizedValuesDetached(RightOptimized):
    """The values are detached (`.detach()`, `.data`), so no gradient reaches the input through them."""

    def project(self, x):
        return self.W_query(x), self.W_key(x), x.detach()


@misconception("OptimizedMultiHeadAttention", caught_by="test_seed_123")
class OptimizedOutProjMadeFirst(RightOptimized):
    """out_proj is created before the projections; under a fixed seed the order is W_query, W_key, out_proj."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        out_proj = nn.Linear(d_out, d_out)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = out_proj


@misconception("OptimizedMultiHeadAttention", caught_by="test_seed_123")
class OptimizedKeysMadeFirst(RightOptimized):
    """W_key is created before W_query; under a fixed seed the order is W_query, W_key, out_proj."""

    projections = ("W_key", "W_query")


@misconception("OptimizedMultiHeadAttention", caught_by="test_seed_123")
class OptimizedDrawsAsIfWithWValue(RightOptimized):
    """out_proj starts from other numbers, as if a third layer came before it; create W_query, W_key, out_proj only."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)


@misconception("OptimizedMultiHeadAttention", caught_by="test_inputs_are_unchanged")
class OptimizedInputOverwritten(RightOptimized):
    """The context vectors are written into the input's memory (`x[...] =`, `copy_`); make a new tensor for them."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        merged = self.merge(self.attend(queries, keys, values))
        x.data[...] = merged.detach()
        return self.out_proj(merged)


# --- EfficientMultiHeadAttention ---


class RightEfficient(RightHeads):
    """Every step as it should be. A mistake that MultiHeadAttention knows too keeps its sentence."""

    projections = ("W_query",)

    def project(self, x):
        return self.W_query(x), x, x


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientSplitWithoutSwapping(SplitWithoutSwapping, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientEveryHthNumber(EveryHthNumber, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientHeadsAndWidthExchanged(HeadsAndWidthExchanged, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientOneWideHead(OneWideHead, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMergedWithoutSwapping(MergedWithoutSwapping, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMergedOutOfOrder(MergedOutOfOrder, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMergedInterleaved(MergedInterleaved, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientHead0Repeated(Head0Repeated, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientFirstSequenceOnly(FirstSequenceOnly, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientHeadsNotScaled(HeadsNotScaled, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientDividedByHeadDim(DividedByHeadDim, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientScaledByTheRootOfDOut(ScaledByTheRootOfDOut, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientScaledByTheRootOfTokens(ScaledByTheRootOfTokens, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientSoftmaxOverTheQueries(SoftmaxOverTheQueries, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientSoftmaxOverTheHeads(SoftmaxOverTheHeads, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_large_scores_do_not_overflow")
class EfficientExponentialsOverflow(ExponentialsOverflow, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMaskMissing(MaskMissing, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMaskHidesTheTokenItself(MaskHidesTheTokenItself, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMaskLetsTheNextTokenThrough(MaskLetsTheNextTokenThrough, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMaskHidesEarlierTokens(MaskHidesEarlierTokens, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMaskTurnedRound(MaskTurnedRound, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMaskAfterSoftmax(MaskAfterSoftmax, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientMaskedWithZeros(MaskedWithZeros, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_large_scores_do_not_overflow")
class EfficientFiniteFillLeaks(FiniteFillLeaks, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_shorter_sequences")
class EfficientContextLengthForTokens(ContextLengthForTokens, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_follows_device")
class EfficientMaskIsNoBuffer(MaskIsNoBuffer, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_parameters")
class EfficientMaskIsAParameter(MaskIsAParameter, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_no_dropout_in_evaluation")
class EfficientMaskedInTrainingOnly(MaskedInTrainingOnly, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_dropout_in_training")
class EfficientDropoutIgnored(DropoutIgnored, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_no_dropout_in_evaluation")
class EfficientDropoutAlwaysOn(DropoutAlwaysOn, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_dropout_in_training")
class EfficientDropoutNotRescaled(DropoutNotRescaled, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_dropout_in_training")
class EfficientDroppedTwice(DroppedTwice, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_dropout_in_training")
class EfficientDropoutKeepsP(DropoutKeepsP, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_dropout_in_training")
class EfficientDropoutOnTheScores(DropoutOnTheScores, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_dropout_in_training")
class EfficientDropoutOnNumbers(DropoutOnNumbers, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_each_call_drops_anew")
class EfficientSeedSetInForward(SeedSetInForward, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_seeds_matter")
class EfficientSeedSetWhenBuilt(SeedSetWhenBuilt, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientOutProjForgotten(OutProjForgotten, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_parameters")
class EfficientOutProjNotMade(OutProjNotMade, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_parameters")
class EfficientOutProjWithoutBias(OutProjWithoutBias, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_bias")
class EfficientQkvBiasIgnored(QkvBiasIgnored, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_parameters")
class EfficientQkvBiasAlwaysOn(QkvBiasAlwaysOn, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientWeightsTransposed(WeightsTransposed, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class EfficientAttentionWeightsDetached(AttentionWeightsDetached, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class EfficientContextDetached(ContextDetached, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class EfficientForwardWithoutGraph(ForwardWithoutGraph, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_refuses_what_cannot_be_split")
class EfficientNothingRefused(NothingRefused, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_float64_stays_exact")
class EfficientScoresInFloat32(ScoresInFloat32, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_dtype_is_kept")
class EfficientResultInFloat64(ResultInFloat64, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientDimensionsSqueezed(DimensionsSqueezed, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientWeightsReturned(WeightsReturned, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientInputAdded(InputAdded, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_parameters")
class EfficientProjectsAll(RightHeads):
    """W_key and W_value are still there and used; leave them out: the input, split into heads, is key and value."""

    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_parameters")
class EfficientProjectsKeys(RightOptimized):
    """W_key is still there and makes the keys; leave it out: the input, split into heads, is key and value."""

    pass


@misconception("EfficientMultiHeadAttention", caught_by="test_parameters")
class EfficientKeepsWKey(RightEfficient):
    """W_key is still made, though nothing uses it; leave the layer out."""

    projections = ("W_query", "W_key")


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientQueriesForAll(RightEfficient):
    """The queries are used as keys and values; both are the input itself, split into heads."""

    def project(self, x):
        queries = self.W_query(x)
        return queries, queries, queries


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientQueriesAsKeys(RightEfficient):
    """The queries are used as keys; the key is the input itself, split into heads."""

    def project(self, x):
        return self.W_query(x), self.W_query(x), x


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientQueriesAsValues(RightEfficient):
    """The queries are used as values; the value is the input itself, split into heads."""

    def project(self, x):
        return self.W_query(x), x, self.W_query(x)


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientInputForAll(RightEfficient):
    """The input is used as query too, and W_query not at all; the queries are W_query(x)."""

    def project(self, x):
        return x, x, x


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientQueriesAndKeysSwapped(RightEfficient):
    """Queries and keys are swapped: W_query(x) makes the queries, which come first in the product."""

    def project(self, x):
        return x, self.W_query(x), x


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientInputOutOfOrder(RightEfficient):
    """Keys and values are cut in memory order, which mixes tokens; split the input like the queries."""

    def attend(self, queries, keys, values):
        pieces = values.transpose(1, 2).reshape(values.shape)
        return super().attend(queries, pieces, pieces)


@misconception("EfficientMultiHeadAttention", caught_by="test_context_vectors")
class EfficientValuesNotSplit(RightEfficient):
    """Every head gets the whole input as its values, and the heads are averaged; split the input like the queries."""

    def forward(self, x):
        queries, keys = self.split(self.W_query(x)), self.split(x)
        return self.out_proj(self.attend(queries, keys, x.unsqueeze(1)).mean(dim=1))


@misconception("EfficientMultiHeadAttention", caught_by="test_gradients_reach_every_weight")
class EfficientInputDetached(RightEfficient):
    """Keys and values are detached (`.detach()`, `.data`), so no gradient reaches the input through them."""

    def project(self, x):
        return self.W_query(x), x.detach(), x.detach()


@misconception("EfficientMultiHeadAttention", caught_by="test_seed_123")
class EfficientOutProjMadeFirst(RightEfficient):
    """out_proj is created before W_query; under a fixed seed W_query comes first."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        out_proj = nn.Linear(d_out, d_out)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = out_proj


@misconception("EfficientMultiHeadAttention", caught_by="test_inputs_are_unchanged")
class EfficientKeysScaledInPlace(RightEfficient):
    """The input is scaled in place (`/=`, `div_`) to make the keys; it is the caller's, so scale the scores instead."""

    def project(self, x):
        queries, values = self.W_query(x), x.clone()
        x.data /= self.head_dim**0.5
        return queries, x, values

    def weigh(self, scores):
        return torch.softmax(scores, dim=-1)

"""What goes wrong in `single_query_attention`."""

import torch

from ...catalogue import FORBIDDEN, misconception


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_not_scaled(query, keys, values):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    return torch.softmax(keys @ query, dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_divided_by_d_k(query, keys, values):
    """The scores are divided by d_k; divide by its square root."""
    return torch.softmax(keys @ query / query.shape[-1], dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_scaled_by_d_v(query, keys, values):
    """The scores are scaled by the width of the values; scale by that of the keys, d_k."""
    return torch.softmax(keys @ query / values.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_scaled_by_tokens(query, keys, values):
    """The scores are scaled by the number of tokens; scale by the width of the keys, d_k."""
    return torch.softmax(keys @ query / keys.shape[0] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_without_softmax(query, keys, values):
    """The softmax is missing: the scaled scores themselves are used as weights."""
    return (keys @ query / query.shape[-1] ** 0.5) @ values


@misconception("single_query_attention", kind="contract", caught_by="test_second_word")
def single_query_weights_returned(query, keys, values):
    """The attention weights are returned; multiply them with the values to get the context vector."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1)


@misconception("single_query_attention", kind="value", caught_by="test_other_widths")
def keys_blended(query, keys, values):
    """The weights are applied to the keys; they belong to the values."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("single_query_attention", kind="contract", caught_by="test_second_word")
def single_query_result_as_a_matrix(query, keys, values):
    """The result has a dimension too many, (1, d_v); one query gives one vector, (d_v,)."""
    return torch.softmax(query[None] @ keys.T / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="gradient", caught_by="test_gradients")
def single_query_detached(query, keys, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so query and keys can not learn."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_divided_by_the_tokens(query, keys, values):
    """The scores are divided by the number of tokens; divide by the square root of d_k."""
    return torch.softmax(keys @ query / keys.shape[0], dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_multiplied(query, keys, values):
    """The scores are multiplied by the square root of d_k; divide by it."""
    return torch.softmax(keys @ query * query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_root_rounded(query, keys, values):
    """The square root of d_k is rounded to an integer; divide by `d_k ** 0.5` as it is."""
    return torch.softmax(keys @ query / int(query.shape[-1] ** 0.5), dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_scaled_afterwards(query, keys, values):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    return torch.softmax(keys @ query, dim=-1) / query.shape[-1] ** 0.5 @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_sign_reversed(query, keys, values):
    """The sign of the scores is reversed, so the worst fit gets the most weight."""
    return torch.softmax(-(keys @ query) / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_softmaxed_twice(query, keys, values):
    """The softmax is applied twice, which flattens the weights; once is right."""
    weights = torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1)
    return torch.softmax(weights, dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_by_plain_sums(query, keys, values):
    """The scores are divided by their sum; take a softmax of them."""
    scores = keys @ query / query.shape[-1] ** 0.5
    return scores / scores.sum() @ values


@misconception("single_query_attention", kind="edge", caught_by="test_large_scores_do_not_overflow")
def single_query_overflows(query, keys, values):
    """exp overflows for large scores: subtract the maximum first, or use torch.softmax."""
    exponentials = torch.exp(keys @ query / query.shape[-1] ** 0.5)
    return exponentials / exponentials.sum() @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def best_value_only(query, keys, values):
    """Only the value of the best key is returned; every value contributes by its weight."""
    return values[(keys @ query).argmax()]


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def query_against_the_values(query, keys, values):
    """The query is scored against the values; score it against the keys."""
    return torch.softmax(values @ query / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def query_before_the_keys(query, keys, values):
    """The product is query @ keys, which fits where T = d_k alone; it is keys @ query."""
    return torch.softmax(query @ keys / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def second_key_as_the_query(query, keys, values):
    """The second key is used as the query; use the query that is passed in."""
    return torch.softmax(keys @ keys[1] / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_values_not_summed(query, keys, values):
    """The weighted values are not summed: (T, d_v) is left. Sum over the tokens, dim=0."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1).unsqueeze(-1) * values


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_values_averaged(query, keys, values):
    """The weighted values are averaged; the weights sum to 1 already, so add them up."""
    return (torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1).unsqueeze(-1) * values).mean(dim=0)


@misconception("single_query_attention", kind="edge", caught_by="test_second_word")
def column_of_scores_softmaxed_as_rows(query, keys, values):
    """The scores are a column, (T, 1), and the softmax over its last dimension makes every weight 1; softmax over
    the tokens.
    """
    return (torch.softmax(keys @ query.unsqueeze(-1) / query.shape[-1] ** 0.5, dim=-1) * values).sum(dim=0)


@misconception("single_query_attention", kind="hard-coded output", caught_by="test_other_widths")
def single_query_always_width_24(query, keys, values):
    """The scaling is fixed to the root of 24; take the width from the query, query.shape[-1]."""
    return torch.softmax(keys @ query / 24**0.5, dim=-1) @ values


@misconception("single_query_attention", kind="hard-coded output", caught_by="test_second_word")
def single_query_always_width_2(query, keys, values):
    """The scaling is fixed to the root of 2; take the width from the query, query.shape[-1]."""
    return torch.softmax(keys @ query / 2**0.5, dim=-1) @ values


@misconception("single_query_attention", kind="hard-coded output", caught_by="test_other_widths")
def single_context_typed_in(query, keys, values):
    """The worked example's context vector is typed in; compute it from the arguments."""
    return torch.tensor(
        [
            -1.5993, 0.0156, 1.2670, 0.0032, -0.6460, -1.1407, -0.4908,
            -1.4632, 0.4747, 1.1926, 0.4506, -0.7110, 0.0602, 0.7125,
            -0.1628, -2.0184, 0.3838, -2.1188, -0.8136, -1.5694, 0.7934,
            -0.2911, -1.3640, -0.2366, -0.9564, -0.5265, 0.0624, 1.7084,
        ]
    )  # fmt: skip


@misconception("single_query_attention", kind="contract", caught_by="test_second_word")
def single_query_with_weights(query, keys, values):
    """It returns a pair, the context vector and the weights; only the context vector is asked for."""
    weights = torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1)
    return weights @ values, weights


@misconception("single_query_attention", kind="edge", caught_by="test_other_widths")
def single_query_squeezed(query, keys, values):
    """squeeze() also takes away a width of 1: with d_v = 1 the shape should be (1,). Use squeeze(0)."""
    return (torch.softmax(query[None] @ keys.T / query.shape[-1] ** 0.5, dim=-1) @ values).squeeze()


@misconception("single_query_attention", kind="contract", caught_by=FORBIDDEN)
def single_query_library_attention(query, keys, values):
    """This calls the library's attention; the exercise is to write it yourself."""
    return torch.nn.functional.scaled_dot_product_attention(query[None], keys, values)[0]


@misconception("single_query_attention", kind="gradient", caught_by="test_gradients")
def single_query_values_detached(query, keys, values):
    """No gradient reaches the values: they are detached (`.detach()` or `.data`)."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1) @ values.detach()


@misconception("single_query_attention", kind="gradient", caught_by="test_gradients")
def single_query_keys_detached(query, keys, values):
    """No gradient reaches the keys: they are detached (`.detach()` or `.data`)."""
    return torch.softmax(keys.detach() @ query / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="gradient", caught_by="test_gradients")
def single_query_itself_detached(query, keys, values):
    """No gradient reaches the query: it is detached (`.detach()` or `.data`)."""
    return torch.softmax(keys @ query.detach() / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="gradient", caught_by="test_gradients")
def single_query_without_gradients(query, keys, values):
    """The result carries no gradient (`.detach()`, `.data` or torch.no_grad())."""
    return (torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1) @ values).detach()


@misconception("single_query_attention", kind="gradient", caught_by="test_gradients")
def single_query_scores_as_numbers(query, keys, values):
    """The scores become numbers on the way (torch.tensor of a list), so no gradient reaches query and keys."""
    scores = torch.tensor([torch.dot(key, query) for key in keys])
    return torch.softmax(scores / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="dtype", caught_by="test_float64_stays_exact")
def single_query_in_float32(query, keys, values):
    """The result is float32 whatever the inputs are; keep their dtype."""
    query, keys, values = query.float(), keys.float(), values.float()
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="dtype", caught_by="test_dtype_is_kept")
def single_query_in_float64(query, keys, values):
    """The result is float64 even for float32 inputs; convert it back."""
    query, keys, values = query.double(), keys.double(), values.double()
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="device", caught_by="test_follows_device")
def single_query_scores_in_float32_zeros(query, keys, values):
    """The scores are filled into torch.empty or torch.zeros, float32 on the CPU; keys @ query has the right dtype
    and device.
    """
    scores = torch.zeros(keys.shape[0])
    for i, key in enumerate(keys):
        scores[i] = torch.dot(key, query)
    return torch.softmax(scores / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="device", caught_by="test_follows_device")
def single_query_context_in_float32_zeros(query, keys, values):
    """The sum is gathered in torch.zeros, float32 on the CPU; a matrix product has the right dtype and device."""
    weights = torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1)
    context = torch.zeros(values.shape[1])
    for weight, value in zip(weights, values, strict=True):
        context += weight * value
    return context


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_context_of_the_querys_width(query, keys, values):
    """The sum starts from zeros of the query's width; the context vector has the width of the values."""
    weights = torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1)
    context = torch.zeros(query.shape)
    for weight, value in zip(weights, values, strict=True):
        context += weight * value
    return context


@misconception("single_query_attention", kind="device", caught_by="test_follows_device")
def single_query_cpu_tensor_made(query, keys, values):
    """A tensor that it makes stays on the CPU and meets the inputs; make it with device=query.device, or use a
    number.
    """
    scores = keys @ query / torch.tensor([query.shape[-1]], dtype=query.dtype).sqrt()
    return torch.softmax(scores, dim=-1) @ values


@misconception("single_query_attention", kind="device", caught_by="test_follows_device")
def single_query_left_on_the_cpu(query, keys, values):
    """The result ends on the CPU, whatever device the inputs are on."""
    return (torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1) @ values).cpu()


@misconception("single_query_attention", kind="side effect", caught_by="test_inputs_are_unchanged")
def single_query_scaled_in_place(query, keys, values):
    """The caller's query is scaled in place (`/=`); make a new tensor: query / ..."""
    query /= query.shape[-1] ** 0.5
    return torch.softmax(keys @ query, dim=-1) @ values


@misconception("single_query_attention", kind="side effect", caught_by="test_inputs_are_unchanged")
def single_query_keys_scaled_in_place(query, keys, values):
    """The caller's keys are scaled in place (`/=`); make a new tensor: keys / ..."""
    keys /= query.shape[-1] ** 0.5
    return torch.softmax(keys @ query, dim=-1) @ values


@misconception("single_query_attention", kind="mask", caught_by="test_second_word")
def first_two_tokens_only(query, keys, values):
    """Only the first two tokens are looked at; the query sees every key."""
    return torch.softmax(keys[:2] @ query / query.shape[-1] ** 0.5, dim=-1) @ values[:2]


@misconception("single_query_attention", kind="mask", caught_by="test_second_word")
def second_key_left_out(query, keys, values):
    """The second token is hidden from the query; the query sees every key."""
    scores = keys @ query / query.shape[-1] ** 0.5
    scores[1] = -torch.inf
    return torch.softmax(scores, dim=-1) @ values


@misconception("single_query_attention", kind="contract", caught_by="test_second_word")
def single_query_not_returned(query, keys, values):
    """Nothing is returned (None): end the function with `return`."""
    torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1) @ values

"""What goes wrong in `single_query_attention`."""

import torch

from ...catalogue import misconception


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


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_weights_returned(query, keys, values):
    """The attention weights are returned; multiply them with the values to get the context vector."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1)


@misconception("single_query_attention", kind="value", caught_by="test_other_widths")
def keys_blended(query, keys, values):
    """The weights are applied to the keys; they belong to the values."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("single_query_attention", kind="value", caught_by="test_second_word")
def single_query_result_as_a_matrix(query, keys, values):
    """The result has a dimension too many, (1, d_v); one query gives one vector, (d_v,)."""
    return torch.softmax(query[None] @ keys.T / query.shape[-1] ** 0.5, dim=-1) @ values


@misconception("single_query_attention", kind="gradient", caught_by="test_gradients")
def single_query_detached(query, keys, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so query and keys can not learn."""
    return torch.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1).detach() @ values

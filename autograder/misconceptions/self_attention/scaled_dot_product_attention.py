"""What goes wrong in `scaled_dot_product_attention`."""

import torch
import torch.nn.functional as F

from ...catalogue import FORBIDDEN, misconception


@misconception("scaled_dot_product_attention", kind="contract", caught_by=FORBIDDEN)
def library_attention(queries, keys, values):
    """This calls the library's attention; the exercise is to write it yourself."""
    return F.scaled_dot_product_attention(queries, keys, values)


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_not_scaled(queries, keys, values):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_divided_by_d_k(queries, keys, values):
    """The scores are divided by d_k; divide by its square root."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1], dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_scaled_by_d_v(queries, keys, values):
    """The scores are scaled by the width of the values; scale by that of the keys, d_k."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / values.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_over_the_queries(queries, keys, values):
    """The softmax runs over the queries (dim=-2); each query's weights are a row: dim=-1."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-2) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_any_leading_dimensions")
def attention_over_dim_1(queries, keys, values):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_any_leading_dimensions")
def attention_keys_reversed(queries, keys, values):
    """`.T` reverses all dimensions of the keys, right in 2-D only; swap the last two with transpose(-2, -1)."""
    reversed_keys = keys.permute(*range(keys.dim() - 1, -1, -1))
    return torch.softmax(queries @ reversed_keys / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def scaled_after_the_softmax(queries, keys, values):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) / keys.shape[-1] ** 0.5 @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_without_softmax(queries, keys, values):
    """The softmax is missing: the scaled scores themselves are used as weights."""
    return queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5 @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_large_scores_do_not_overflow")
def attention_overflows(queries, keys, values):
    """exp overflows for large scores: subtract each row's maximum first, or use torch.softmax."""
    exponentials = torch.exp(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5)
    return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("scaled_dot_product_attention", kind="gradient", caught_by="test_gradients")
def attention_detached(queries, keys, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so queries and keys can not learn."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("scaled_dot_product_attention", kind="side effect", caught_by="test_inputs_are_unchanged")
def queries_scaled_in_place(queries, keys, values):
    """`/=` scales the caller's queries in place; make a new tensor with `queries / ...`."""
    queries /= keys.shape[-1] ** 0.5
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) @ values

"""Right answers to `stacked_heads_attention`, as different students write them."""

import math

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("stacked_heads_attention")
def stacked_in_a_loop(inputs, W_query, W_key, W_value):
    """a loop over the heads, stacked at the end"""
    heads = []
    for W_q, W_k, W_v in zip(W_query, W_key, W_value, strict=True):
        queries, keys, values = F.linear(inputs, W_q), F.linear(inputs, W_k), F.linear(inputs, W_v)
        weights = F.softmax(queries @ keys.T / math.sqrt(keys.shape[1]), dim=1)
        heads.append(weights @ values)
    return torch.stack(heads)


@right_answer("stacked_heads_attention")
def stacked_by_einsum(inputs, W_query, W_key, W_value):
    """einsum throughout"""
    queries = torch.einsum("ti,hki->htk", inputs, W_query)
    keys = torch.einsum("ti,hki->htk", inputs, W_key)
    values = torch.einsum("ti,hvi->htv", inputs, W_value)
    weights = torch.einsum("hqk,htk->hqt", queries * W_key.shape[1] ** -0.5, keys).softmax(-1)
    return torch.einsum("hqt,htv->hqv", weights, values)


@right_answer("stacked_heads_attention")
def stacked_by_bmm(inputs, W_query, W_key, W_value):
    """bmm with repeated inputs and weights on the left, as in the source document"""
    stacked = inputs.repeat(len(W_query), 1, 1).permute(0, 2, 1)
    queries, keys, values = W_query.bmm(stacked), W_key.bmm(stacked), W_value.bmm(stacked)
    weights = torch.softmax(queries.permute(0, 2, 1).bmm(keys) / W_key.shape[1] ** 0.5, dim=-1)
    return weights.bmm(values.permute(0, 2, 1))


@right_answer("stacked_heads_attention")
def stacked_as_one_wide_projection(inputs, W_query, W_key, W_value):
    """the heads' weights laid into one matrix, split afterwards; softmax by hand"""
    queries, keys, values = (
        F.linear(inputs, W.flatten(0, 1)).unflatten(-1, W.shape[:2]).movedim(1, 0) for W in (W_query, W_key, W_value)
    )
    scores = queries.matmul(keys.mT).div(keys.size(-1) ** 0.5)
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return (exponentials / exponentials.sum(-1, keepdim=True)).matmul(values)


@right_answer("stacked_heads_attention")
def stacked_in_float64(inputs, W_query, W_key, W_value):
    """float64 inside, the inputs' dtype outside"""
    queries, keys, values = (inputs.double() @ W.double().mT for W in (W_query, W_key, W_value))
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1) @ values).to(inputs.dtype)

"""Right answers to `dot_product_scores`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("dot_product_scores")
def one_dot_a_token(query, inputs):
    """torch.dot in a loop, stacked"""
    return torch.stack([torch.dot(token, query) for token in inputs])


@right_answer("dot_product_scores")
def filled_in_one_by_one(query, inputs):
    """filled into an empty tensor of the inputs' dtype and device"""
    scores = torch.empty(inputs.shape[0], dtype=inputs.dtype, device=inputs.device)
    for i, token in enumerate(inputs):
        scores[i] = torch.dot(token, query)
    return scores


@right_answer("dot_product_scores")
def query_times_transposed(query, inputs):
    """query @ inputs.T"""
    return query @ inputs.T


@right_answer("dot_product_scores")
def products_summed(query, inputs):
    """products, then a sum over the width"""
    return (inputs * query).sum(-1)

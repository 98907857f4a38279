"""Right answers to `context_vector`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("context_vector")
def weighted_tokens_summed(weights, inputs):
    """weighted tokens, summed over dim 0"""
    return (weights[:, None] * inputs).sum(dim=0)


@right_answer("context_vector")
def summed_in_a_loop(weights, inputs):
    """a running sum"""
    context = torch.zeros_like(inputs[0])
    for weight, token in zip(weights, inputs, strict=True):
        context = context + weight * token
    return context


@right_answer("context_vector")
def transposed_product(weights, inputs):
    """inputs.T @ weights"""
    return inputs.T @ weights

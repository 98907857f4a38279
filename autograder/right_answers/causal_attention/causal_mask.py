"""Right answers to `causal_mask`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("causal_mask")
def compared_positions(num_tokens):
    """positions compared with each other"""
    positions = torch.arange(num_tokens)
    return positions.unsqueeze(0) > positions.unsqueeze(1)


@right_answer("causal_mask")
def lower_triangle_inverted(num_tokens):
    """tril, then turned round"""
    return ~torch.tril(torch.ones(num_tokens, num_tokens)).bool()


@right_answer("causal_mask")
def filled_in_a_loop(num_tokens):
    """a loop over the rows"""
    mask = torch.zeros((num_tokens, num_tokens), dtype=torch.bool)
    for query in range(num_tokens):
        mask[query, query + 1 :] = True
    return mask


@right_answer("causal_mask")
def list_of_comparisons(num_tokens):
    """a tensor made of a nested list"""
    return torch.tensor([[key > query for key in range(num_tokens)] for query in range(num_tokens)])


@right_answer("causal_mask")
def triangle_compared_with_zero(num_tokens):
    """tril == 0"""
    return torch.ones(num_tokens, num_tokens).tril() == 0


@right_answer("causal_mask")
def triangle_by_indices(num_tokens):
    """triu_indices"""
    mask = torch.full((num_tokens, num_tokens), False)
    mask[tuple(torch.triu_indices(num_tokens, num_tokens, offset=1))] = True
    return mask

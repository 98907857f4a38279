"""Right answers to `permuted_outputs`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("permuted_outputs")
def written_to_its_place(attention, x, order):
    """an empty result, written into at [:, order]"""
    shuffled = attention(x[:, order])
    result = torch.empty_like(shuffled)
    result[:, order] = shuffled
    return result


@right_answer("permuted_outputs")
def inverse_by_hand(attention, x, order):
    """the inverse order, filled by arange; index_select"""
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(len(order), device=order.device)
    return attention(x.index_select(1, order)).index_select(1, inverse)


@right_answer("permuted_outputs")
def token_by_token(attention, x, order):
    """a stack of single tokens before and after"""
    outputs = attention(torch.stack([x[:, place] for place in order.tolist()], dim=1))
    places = order.tolist()
    return torch.stack([outputs[:, places.index(token)] for token in range(len(places))], dim=1)


@right_answer("permuted_outputs")
def by_matrices(attention, x, order):
    """a permutation matrix, and its transpose"""
    matrix = torch.eye(len(order), dtype=x.dtype, device=x.device)[order]  # (T, T)
    return matrix.T @ attention(matrix @ x)


@right_answer("permuted_outputs")
def gathered(attention, x, order):
    """gather, and scatter"""
    outputs = attention(x.gather(1, order[None, :, None].expand(x.shape[0], -1, x.shape[2])))
    return torch.zeros_like(outputs).scatter(1, order[None, :, None].expand_as(outputs), outputs)


@right_answer("permuted_outputs")
def sorted_indices(attention, x, order):
    """the indices that sort returns"""
    _, back = order.sort()
    return attention(x[:, order, :])[:, back, :]

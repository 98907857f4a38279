"""Right answers to `sliding_window_mask`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("sliding_window_mask")
def two_triangles(num_tokens, window):
    """what is above the diagonal, or far enough below it"""
    ones = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    return ones.triu(diagonal=1) | ones.tril(diagonal=-window)


@right_answer("sliding_window_mask")
def band_turned_round(num_tokens, window):
    """a band of ones that is seen"""
    band = torch.ones(num_tokens, num_tokens).tril().triu(-(window - 1))
    return band == 0


@right_answer("sliding_window_mask")
def row_by_row(num_tokens, window):
    """a loop over the queries, slices"""
    mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    for query in range(num_tokens):
        mask[query, max(0, query - window + 1) : query + 1] = False
    return mask


@right_answer("sliding_window_mask")
def place_by_place(num_tokens, window):
    """two loops"""
    mask = torch.empty(num_tokens, num_tokens, dtype=torch.bool)
    for i in range(num_tokens):
        for j in range(num_tokens):
            mask[i][j] = j > i or i - j >= window
    return mask


@right_answer("sliding_window_mask")
def nested_list(num_tokens, window):
    """a tensor made of a nested list"""
    return torch.tensor([[not 0 <= i - j < window for j in range(num_tokens)] for i in range(num_tokens)])


@right_answer("sliding_window_mask")
def diagonals_added(num_tokens, window):
    """identities, each one lower than the one before"""
    seen = torch.zeros(num_tokens, num_tokens)
    for back in range(min(window, num_tokens)):
        seen += torch.diag(torch.ones(num_tokens - back), diagonal=-back)
    return ~seen.bool()

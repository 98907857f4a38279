"""Right answers to `padding_mask`, as different students write them."""

import torch
from torch import nn

from autograder.catalogue import right_answer


@right_answer("padding_mask")
def rows_filled_in_a_loop(lengths, max_len):
    """a loop over the sentences"""
    mask = torch.zeros(len(lengths), max_len, dtype=torch.bool, device=lengths.device)
    for row, length in enumerate(lengths):
        mask[row, length:] = True
    return mask


@right_answer("padding_mask")
def expanded_and_turned_round(lengths, max_len):
    """both expanded, tokens compared, turned round"""
    places = torch.arange(max_len, device=lengths.device).expand(lengths.shape[0], -1)
    return ~(places < lengths.unsqueeze(1).expand(-1, max_len))


@right_answer("padding_mask")
def from_a_triangle(lengths, max_len):
    """rows of a triangle, looked up by length"""
    triangle = torch.ones(max_len + 1, max_len, device=lengths.device).triu() > 0
    return triangle[lengths]


@right_answer("padding_mask")
def counted_up(lengths, max_len):
    """ones counted up, compared with lengths as a column"""
    ones = torch.ones((len(lengths), max_len), dtype=torch.long, device=lengths.device)
    return ones.cumsum(dim=1) > lengths.view(-1, 1)


@right_answer("padding_mask")
def nested_lists(lengths, max_len):
    """comprehensions over plain numbers"""
    rows = [[place >= length for place in range(max_len)] for length in lengths.tolist()]
    return torch.tensor(rows, dtype=torch.bool).to(lengths.device)


@right_answer("padding_mask")
def sentences_padded(lengths, max_len):
    """what pad_sequence fills up"""
    rows = [torch.zeros(int(length), device=lengths.device) for length in lengths]
    rows.append(torch.zeros(max_len, device=lengths.device))
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1.0)[:-1] == 1

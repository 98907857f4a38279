"""Right answers to `sinusoidal_positions`, as different students write them."""

import math

import torch

from autograder.catalogue import right_answer


@right_answer("sinusoidal_positions")
def written_into_every_other_column(num_tokens, d):
    """zeros, written into at 0::2 and 1::2, as in many a tutorial"""
    pe = torch.zeros(num_tokens, d)
    position = torch.arange(0, num_tokens, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d, 2).float() * (-math.log(10000.0) / d))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@right_answer("sinusoidal_positions")
def number_by_number(num_tokens, d):
    """two loops, and math"""
    rows = []
    for p in range(num_tokens):
        row = []
        for i in range(d // 2):
            angle = p / 10000 ** (2 * i / d)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows)


@right_answer("sinusoidal_positions")
def as_shifted_sines(num_tokens, d):
    """a cosine is a sine a quarter of a turn further on"""
    columns = torch.arange(d, dtype=torch.float64)
    rates = 10000.0 ** -((columns - columns % 2) / d)
    shift = (columns % 2) * math.pi / 2
    return torch.sin(torch.arange(num_tokens)[:, None] * rates + shift).float()


@right_answer("sinusoidal_positions")
def an_outer_product(num_tokens, d):
    """torch.outer and torch.polar"""
    angles = torch.outer(torch.arange(num_tokens).float(), torch.pow(10000.0, -torch.arange(0, d, 2) / d))
    turned = torch.polar(torch.ones_like(angles), angles)
    return torch.stack((turned.imag, turned.real), dim=2).reshape(num_tokens, d)

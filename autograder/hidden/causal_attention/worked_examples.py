"""Inputs and printed values of the source document's worked examples."""

import torch

from solutions.six_words import SIX_WORDS

# The causal weights that the source document prints for the six words.
SIX_WORDS_WEIGHTS = [
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.5517, 0.4483, 0.0, 0.0, 0.0, 0.0],
    [0.3800, 0.3097, 0.3103, 0.0, 0.0, 0.0],
    [0.2758, 0.2460, 0.2462, 0.2319, 0.0, 0.0],
    [0.2175, 0.1983, 0.1984, 0.1888, 0.1971, 0.0],
    [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
]
TWO_HEADS = [
    [-0.4519, 0.2216, 0.4772, 0.1063],
    [-0.5874, 0.0058, 0.5891, 0.3257],
    [-0.6300, -0.0632, 0.6202, 0.3860],
    [-0.5675, -0.0843, 0.5478, 0.3589],
    [-0.5526, -0.0981, 0.5321, 0.3428],
    [-0.5299, -0.1081, 0.5077, 0.3493],
]
P = 0.25
ROOM = 5
"""Number of tokens by which the sequences in the dropout tests are shorter than context_length."""


def six_words_scores() -> torch.Tensor:
    """The scores of the six words under the layers that seed 789 draws, (6, 6)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(789)
        W_query, W_key = (torch.nn.Linear(3, 2, bias=False).weight.detach().double() for _ in range(2))
    words = SIX_WORDS.double()
    return ((words @ W_query.T) @ (words @ W_key.T).T).round(decimals=5).float()


def six_words_weights() -> torch.Tensor:
    """Their weights while every word may look at every other one, (6, 6)."""
    return torch.softmax(six_words_scores().double() / 2**0.5, dim=-1).round(decimals=6).float()

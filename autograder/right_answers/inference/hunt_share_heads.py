"""Right answers to `hunt_share_heads`: several sequences, and one group for four heads."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_share_heads")
def twelve_numbers():
    """two sequences of three tokens of width 2"""
    return torch.arange(12.0).reshape(2, 1, 3, 2)


@right_answer("hunt_share_heads")
def three_sequences():
    """a batch of three, of which the last alone differs"""
    return torch.tensor([3.0, 3.0, -0.5]).reshape(3, 1, 1, 1)


@right_answer("hunt_share_heads")
def one_number_differs():
    """zeros but for a single small number"""
    x = torch.zeros(2, 1, 2, 2)
    x[1, 0, 1, 1] = 0.01
    return x


@right_answer("hunt_share_heads")
def drawn_by_chance():
    """drawn by chance, and asked for a gradient"""
    return torch.rand(4, 1, 1, 3, requires_grad=True)

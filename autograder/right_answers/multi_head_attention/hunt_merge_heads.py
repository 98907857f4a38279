"""Right answers to `hunt_merge_heads`: as many sequences as tokens, of other sizes and numbers."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_merge_heads")
def one_number_a_place():
    """four numbers: one head of width 1, two sequences and two tokens"""
    return torch.tensor([[[[1.0], [2.0]]], [[[3.0], [4.0]]]])


@right_answer("hunt_merge_heads")
def a_single_one():
    """zeros but for a single 1, in the second token of the first sequence"""
    x = torch.zeros(2, 2, 2, 1)
    x[0, 0, 1, 0] = 1
    return x


@right_answer("hunt_merge_heads")
def twelve_drawn():
    """twelve numbers drawn by chance, as many as are allowed"""
    return torch.randn(2, 3, 2, 1)


@right_answer("hunt_merge_heads")
def three_of_each():
    """three sequences of three tokens"""
    return torch.arange(9.0).view(3, 1, 3, 1)


@right_answer("hunt_merge_heads")
def small_differences():
    """negative numbers that differ by no more than 0.01"""
    return -torch.linspace(0.5, 0.51, 12).reshape(2, 1, 2, 3)


@right_answer("hunt_merge_heads")
def found_by_trying():
    """tries all sizes that fit until merging a swapped batch gives the same shape and other numbers"""
    for b in range(1, 4):
        for tokens in range(1, 4):
            x = torch.rand(b, 1, tokens, 1, requires_grad=True)
            swapped = x.transpose(0, 2)
            if swapped.shape == x.shape and not torch.equal(swapped, x):
                return x
    return None

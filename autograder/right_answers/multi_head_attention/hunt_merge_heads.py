"""Right answers to `hunt_merge_heads`: inputs of other sizes and numbers."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_merge_heads")
def one_number_a_place():
    """four numbers: two heads of width 1 and two tokens"""
    return torch.tensor([[[[1.0], [2.0]], [[3.0], [4.0]]]])


@right_answer("hunt_merge_heads")
def a_single_one():
    """zeros but for a single 1, in the second token of the first head"""
    x = torch.zeros(1, 2, 2, 1)
    x[0, 0, 1, 0] = 1
    return x


@right_answer("hunt_merge_heads")
def twelve_drawn():
    """twelve numbers drawn by chance, as many as are allowed"""
    return torch.randn(1, 3, 2, 2)


@right_answer("hunt_merge_heads")
def two_sequences():
    """a batch of two, of which the second alone shows it"""
    return torch.stack([torch.ones(2, 3, 1), torch.arange(6.0).view(2, 3, 1)])


@right_answer("hunt_merge_heads")
def small_differences():
    """negative numbers that differ by no more than 0.01"""
    return -torch.linspace(0.5, 0.51, 12).reshape(1, 2, 3, 2)


@right_answer("hunt_merge_heads")
def found_by_trying():
    """draws inputs until the heads put behind each other are not the tokens put side by side"""
    while True:
        x = torch.rand(1, 2, 2, 2, requires_grad=True)
        if not torch.equal(x.flatten(), x.transpose(1, 2).flatten()):
            return x

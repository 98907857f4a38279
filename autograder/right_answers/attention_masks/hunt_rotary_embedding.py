"""Right answers to `hunt_rotary_embedding`: positions in longer texts, of other widths and numbers."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_rotary_embedding")
def first_wrong_position():
    """the first position at which the angles begin again"""
    return torch.ones(1, 4), torch.tensor([2048])


@right_answer("hunt_rotary_embedding")
def three_pairs():
    """a token of width 6, counted up, very far along"""
    return torch.arange(6.0).unsqueeze(0), torch.tensor([100_000])


@right_answer("hunt_rotary_embedding")
def two_tokens_as_a_list():
    """two tokens, one of them at position 0, returned in a list"""
    return [torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 0.0]]), torch.tensor([0, 3000])]


@right_answer("hunt_rotary_embedding")
def before_the_beginning():
    """ten numbers, a negative position"""
    return torch.eye(10)[3:4], torch.tensor([-2])


@right_answer("hunt_rotary_embedding")
def found_by_doubling():
    """drawn numbers at a power of two"""
    return torch.randn(1, 2), torch.tensor([2**13])

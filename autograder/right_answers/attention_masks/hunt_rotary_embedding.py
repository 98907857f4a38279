"""Right answers to `hunt_rotary_embedding`: two pairs or more, at other positions and of other numbers."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_rotary_embedding")
def all_alike_at_a_position():
    """ones, of which each pair turns by its own angle"""
    return torch.ones(1, 4), torch.tensor([1])


@right_answer("hunt_rotary_embedding")
def three_pairs():
    """a token of width 6, counted up, far along"""
    return torch.arange(6.0).unsqueeze(0), torch.tensor([100])


@right_answer("hunt_rotary_embedding")
def two_tokens_as_a_list():
    """two tokens, one of them at position 0, returned in a list"""
    return [torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 0.0]]), torch.arange(2)]


@right_answer("hunt_rotary_embedding")
def as_wide_as_can_be():
    """ten numbers, a negative position"""
    return torch.eye(10)[3:4], torch.tensor([-2])

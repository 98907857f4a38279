"""Right answers to `hunt_rms_norm`: vectors so short that eps counts."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_rms_norm")
def one_element():
    """a single element, as large as the root of eps"""
    return torch.tensor([[1e-6]]), torch.tensor([1.0])


@right_answer("hunt_rms_norm")
def one_short_vector_of_two():
    """an ordinary vector, and a very short one with a negative element"""
    return torch.tensor([[1.0, 2.0, 3.0], [1e-8, 0.0, -1e-9]]), torch.ones(3)


@right_answer("hunt_rms_norm")
def just_short_enough():
    """a mean square that is a hundred times eps"""
    return torch.full((2, 4), -1e-5), torch.ones(4)


@right_answer("hunt_rms_norm")
def large_weights():
    """a longer vector, with large weights that make the difference large enough"""
    return torch.full((1, 2), 1e-4), torch.tensor([-100.0, 1000.0])


@right_answer("hunt_rms_norm")
def drawn_and_shortened():
    """drawn numbers, divided by a million"""
    return torch.randn(1, 5) / 1e6, torch.ones(5)

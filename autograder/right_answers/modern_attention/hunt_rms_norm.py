"""Right answers to `hunt_rms_norm`: vectors whose mean is not 0."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_rms_norm")
def one_element():
    """a single element, which is its own mean"""
    return torch.tensor([[2.0]]), torch.tensor([1.0])


@right_answer("hunt_rms_norm")
def same_elements_twice():
    """two vectors of equal elements"""
    return torch.full((2, 4), 5.0), torch.ones(4)


@right_answer("hunt_rms_norm")
def a_little_off():
    """a mean that is just far enough from 0"""
    return torch.tensor([[-1.0, 1.1]]), torch.tensor([1.0, -2.0])

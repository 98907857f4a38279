"""Alternative solutions of `softcap`."""

import torch

from autograder.catalogue import right_answer


@right_answer("softcap")
def with_the_method(scores, cap):
    """the method, and the product last"""
    return (scores / cap).tanh() * cap


@right_answer("softcap")
def from_a_sigmoid(scores, cap):
    """tanh as a scaled sigmoid"""
    return cap * (2 * torch.sigmoid(2 * scores / cap) - 1)


@right_answer("softcap")
def copied_then_in_place(scores, cap):
    """in place on a copy"""
    return scores.div(cap).tanh_().mul_(cap) if not scores.requires_grad else torch.tanh(scores / cap).mul(cap)

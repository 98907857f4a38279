"""Right answers to `linear_projection`, as different students write them."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("linear_projection")
def functional_linear(inputs, weight):
    """F.linear"""
    return F.linear(inputs, weight)


@right_answer("linear_projection")
def einsum_projection(inputs, weight):
    """einsum"""
    return torch.einsum("...i,oi->...o", inputs, weight)


@right_answer("linear_projection")
def tensordot_projection(inputs, weight):
    """tensordot"""
    return torch.tensordot(inputs, weight, dims=([-1], [1]))

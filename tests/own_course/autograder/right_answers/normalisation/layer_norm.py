"""Right answers to `layer_norm`, as different students write them."""

import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("layer_norm")
def by_the_library(x, eps=1e-5):
    """PyTorch's own layer norm"""
    return F.layer_norm(x, x.shape[-1:], eps=eps)

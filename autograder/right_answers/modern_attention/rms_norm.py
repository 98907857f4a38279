"""Alternative solutions of `rms_norm`."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("rms_norm")
def by_the_library(x, weight, eps=1e-6):
    """the library's function, in float32 for half precision"""
    if x.dtype in (torch.float16, torch.bfloat16):
        return F.rms_norm(x.float(), weight.shape, weight.float(), eps).to(x.dtype)
    return F.rms_norm(x, weight.shape, weight, eps)


@right_answer("rms_norm")
def root_and_division(x, weight, eps=1e-6):
    """a root, a division, and torch.promote_types for the precision"""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    rms = torch.sqrt((wide * wide).mean(-1, keepdim=True) + eps)
    return (wide / rms).to(x.dtype) * weight


@right_answer("rms_norm")
def by_the_vector_norm(x, weight, eps=1e-6):
    """the sum of squares divided by the width"""
    wide = x.double()
    squares = torch.einsum("...d,...d->...", wide, wide) / x.shape[-1]
    return (wide / (squares + eps).sqrt().unsqueeze(-1) * weight.double()).to(x.dtype)

"""Alternative solutions of `swiglu`."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("swiglu")
def by_linear(x, W_gate, W_up, W_down):
    """F.linear"""
    return F.linear(F.silu(F.linear(x, W_gate)) * F.linear(x, W_up), W_down)


@right_answer("swiglu")
def silu_written_out(x, W_gate, W_up, W_down):
    """SiLU as a product with a sigmoid, and einsum"""
    gate = torch.einsum("...d,fd->...f", x, W_gate)
    up = torch.einsum("...d,fd->...f", x, W_up)
    return torch.einsum("...f,df->...d", gate * torch.sigmoid(gate) * up, W_down)


@right_answer("swiglu")
def one_product_for_both(x, W_gate, W_up, W_down):
    """both projections in one product, then split"""
    gate, up = (x @ torch.cat([W_gate, W_up]).mT).chunk(2, dim=-1)
    return (F.silu(gate) * up) @ W_down.mT

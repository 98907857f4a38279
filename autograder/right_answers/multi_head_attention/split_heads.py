"""Right answers to `split_heads`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("split_heads")
def split_by_view_and_permute(x, num_heads):
    """view, permute and contiguous"""
    b, num_tokens, d = x.size()
    assert d % num_heads == 0, "d must be divisible by num_heads"
    return x.view(b, num_tokens, num_heads, -1).permute(0, 2, 1, 3).contiguous()


@right_answer("split_heads")
def split_by_chunk(x, num_heads):
    """chunk, and stack along dimension 1"""
    if x.size(-1) % num_heads:
        raise ValueError(f"{x.size(-1)} is not divisible by {num_heads}")
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@right_answer("split_heads")
def split_by_unflatten(x, num_heads):
    """unflatten and movedim; its own RuntimeError becomes a ValueError"""
    try:
        return x.unflatten(-1, (num_heads, -1)).movedim(-2, -3)
    except RuntimeError as error:
        raise ValueError("the width is not divisible by the number of heads") from error


@right_answer("split_heads")
def split_by_slices(x, num_heads):
    """slices, head by head"""
    head_dim, rest = divmod(x.shape[2], num_heads)
    assert not rest
    pieces = [x[:, :, i * head_dim : (i + 1) * head_dim].unsqueeze(1) for i in range(num_heads)]
    return torch.cat(pieces, dim=1)


@right_answer("split_heads")
def split_by_einsum(x, num_heads):
    """einsum only to swap dimensions"""
    b, num_tokens, d = x.shape
    if d % num_heads != 0:
        raise AssertionError
    return torch.einsum("bthd->bhtd", torch.reshape(x, (b, num_tokens, num_heads, d // num_heads)))

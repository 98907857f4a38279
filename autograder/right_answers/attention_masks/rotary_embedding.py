"""Right answers to `rotary_embedding`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("rotary_embedding")
def complex_numbers(x, positions, base=10000.0):
    """pairs as complex numbers, times polar ones"""
    freqs = 1.0 / base ** (torch.arange(0, x.shape[-1], 2, device=x.device, dtype=x.dtype) / x.shape[-1])
    angles = torch.outer(positions.to(x.dtype), freqs)
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)


@right_answer("rotary_embedding")
def neighbours_turned_and_added(x, positions, base=10000.0):
    """x times cosines plus its neighbours, one negative, times sines"""
    d = x.shape[-1]
    theta = base ** (-2.0 * torch.arange(d // 2, dtype=x.dtype, device=x.device) / d)
    angles = (positions.unsqueeze(-1) * theta).repeat_interleave(2, dim=-1)
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape(x.shape)
    return x * angles.cos() + turned * angles.sin()


@right_answer("rotary_embedding")
def written_into_zeros(x, positions, base=10000.0):
    """a new tensor that is filled, pairs by unflatten"""
    d = x.size(-1)
    theta = torch.exp(-torch.log(torch.tensor(base, dtype=x.dtype, device=x.device))
                      * torch.arange(0, d, 2, device=x.device).to(x.dtype) / d)  # fmt: skip
    angle = torch.einsum("t,m->tm", positions.to(x.dtype), theta)
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    result = torch.zeros_like(x)
    result[..., 0::2] = a * torch.cos(angle) - b * torch.sin(angle)
    result[..., 1::2] = b * torch.cos(angle) + a * torch.sin(angle)
    return result


@right_answer("rotary_embedding")
def matrices_of_turns(x, positions, base=10000.0):
    """a 2 by 2 matrix for each pair and position"""
    d = x.shape[-1]
    m = torch.arange(d // 2, dtype=x.dtype, device=x.device)
    angles = positions[:, None].to(x.dtype) / base ** (2 * m / d)
    cos, sin = angles.cos(), angles.sin()
    turns = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)  # (T, d/2, 2, 2)
    return (turns @ x.reshape(*x.shape[:-1], d // 2, 2, 1)).squeeze(-1).flatten(-2)


@right_answer("rotary_embedding")
def pair_by_pair(x, positions, base=10000.0):
    """a loop over the pairs, concatenated"""
    columns = []
    for m in range(0, x.shape[-1], 2):
        angle = positions.to(x.dtype) * base ** (-m / x.shape[-1])
        cos, sin = torch.cos(angle), torch.sin(angle)
        columns.append(x[..., m] * cos - x[..., m + 1] * sin)
        columns.append(x[..., m] * sin + x[..., m + 1] * cos)
    return torch.stack(columns, dim=-1)


@right_answer("rotary_embedding")
def angles_in_float64(x, positions, base=10000.0):
    """angles in float64, sines and cosines in the dtype of x"""
    d = x.shape[-1]
    theta = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angles = positions.double()[:, None] * theta
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).view(x.shape)

"""Right answers to `share_heads`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("share_heads")
def expanded(x, num_heads):
    """a dimension more, expanded, and both put together"""
    b, groups, T, hd = x.shape
    return x[:, :, None].expand(b, groups, num_heads // groups, T, hd).reshape(b, num_heads, T, hd)


@right_answer("share_heads")
def by_index(x, num_heads):
    """the group of each head as an index"""
    heads = torch.arange(num_heads, device=x.device)
    return x[:, heads // (num_heads // x.size(1))]


@right_answer("share_heads")
def head_by_head(x, num_heads):
    """a list of the heads' pieces"""
    each = num_heads // x.shape[1]
    return torch.stack([x[:, i // each] for i in range(num_heads)], dim=1)


@right_answer("share_heads")
def repeated_and_swapped(x, num_heads):
    """repeated as a whole, then the two dimensions swapped"""
    each = num_heads // x.shape[1]
    return x.repeat(1, each, 1, 1).unflatten(1, (each, x.shape[1])).transpose(1, 2).flatten(1, 2)


@right_answer("share_heads")
def put_together(x, num_heads):
    """the groups cut apart and put together again"""
    return torch.cat([group for group in x.split(1, dim=1) for _ in range(num_heads // x.shape[1])], dim=1)

"""Right answers to `merge_heads`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("merge_heads")
def merged_by_view(x):
    """transpose, contiguous, view"""
    b, h, num_tokens, head_dim = x.shape
    return x.transpose(1, 2).contiguous().view(b, num_tokens, h * head_dim)


@right_answer("merge_heads")
def merged_by_cat(x):
    """unbind and cat"""
    return torch.cat(x.unbind(dim=1), dim=-1)


@right_answer("merge_heads")
def merged_by_flatten(x):
    """permute and flatten"""
    return x.permute(0, 2, 1, 3).flatten(start_dim=2)


@right_answer("merge_heads")
def merged_token_by_token(x):
    """each token's pieces, joined in a loop"""
    tokens = [x[:, :, t].reshape(x.shape[0], -1) for t in range(x.shape[2])]
    return torch.stack(tokens, 1)

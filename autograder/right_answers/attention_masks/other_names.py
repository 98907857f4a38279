"""Right answers whose arguments have other names than the text's: graders pass what has no default by position."""

import torch
from torch import nn

from autograder.catalogue import right_answer
from solutions.attention_masks import masked_attention


@right_answer("padding_mask")
def padding_in_other_names(n, width):
    """other names for all arguments"""
    return torch.arange(width, device=n.device)[None] >= n[:, None]


@right_answer("masked_attention")
def attention_in_other_names(q, k, v, hidden):
    """other names for all arguments"""
    weights = ((q @ k.mT) / k.size(-1) ** 0.5).masked_fill(hidden, -torch.inf).softmax(-1)
    return weights.nan_to_num() @ v


@right_answer("to_sdpa_mask")
def turned_in_other_names(hidden):
    """another name for the argument"""
    return hidden.logical_not()


@right_answer("sliding_window_mask")
def window_in_other_names(length, w):
    """other names for all arguments"""
    return (torch.ones(length, length).tril() - torch.ones(length, length).tril(-w)) == 0


@right_answer("permuted_outputs")
def permuted_in_other_names(model, sentence, perm):
    """other names for all arguments"""
    return model(sentence[:, perm])[:, perm.argsort()]


@right_answer("alibi_bias")
def bias_in_other_names(h, n):
    """other names for all arguments"""
    k = torch.arange(n)
    return torch.stack([2 ** (-8 * i / h) * torch.tril(k - k[:, None]) for i in range(1, h + 1)])


@right_answer("rotary_embedding")
def rotated_in_other_names(q, pos, theta=10000.0):
    """other names for all arguments"""
    angle = pos[:, None] / theta ** (torch.arange(0, q.size(-1), 2, device=q.device, dtype=q.dtype) / q.size(-1))
    c, s, a, b = angle.cos(), angle.sin(), q[..., ::2], q[..., 1::2]
    return torch.stack([a * c - b * s, a * s + b * c], -1).reshape(q.shape)


@right_answer("CrossAttention")
class CrossInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_in, n_other, n_out, n_head):
        super().__init__()
        if n_out % n_head:
            raise ValueError("no whole number")
        self.n_head = n_head
        self.W_query = nn.Linear(n_in, n_out, bias=False)
        self.W_key, self.W_value = nn.Linear(n_other, n_out, bias=False), nn.Linear(n_other, n_out, bias=False)
        self.out_proj = nn.Linear(n_out, n_out)

    def forward(self, tokens, memory, hidden=None):
        q, k, v = self.W_query(tokens), self.W_key(memory), self.W_value(memory)
        q, k, v = (t.unflatten(-1, (self.n_head, -1)).movedim(2, 1) for t in (q, k, v))
        if hidden is None:
            hidden = torch.zeros_like(memory[..., 0], dtype=torch.bool)
        return self.out_proj(masked_attention(q, k, v, hidden[:, None, None]).movedim(1, 2).flatten(2))

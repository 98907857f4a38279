"""Right answers whose arguments have other names than the text's: graders pass what has no default by position."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("sinusoidal_positions")
def positions_in_other_names(length, width):
    """other names for all arguments"""
    waves = torch.arange(length)[:, None] / 10000 ** (torch.arange(width // 2) * 2 / width)
    return torch.cat([waves.sin()[..., None], waves.cos()[..., None]], dim=-1).view(length, width)


@right_answer("next_token_loss")
def loss_in_other_names(scores, ids):
    """other names for all arguments"""
    return F.cross_entropy(scores[:, :-1].mT, ids[:, 1:])


@right_answer("generate")
def written_in_other_names(net, prompt, steps, window):
    """other names for all arguments"""
    for _ in range(steps):
        prompt = torch.cat([prompt, net(prompt[:, -window:])[:, -1].argmax(1).unsqueeze(1)], 1)
    return prompt


@right_answer("sample_next")
def drawn_in_other_names(scores, t, k):
    """other names for all arguments"""
    if not t:
        return scores.max(-1).indices
    values, words = scores.sort(descending=True, dim=-1)
    return words[:, :k].gather(1, (values[:, :k] / t).softmax(1).multinomial(1))[:, 0]


@right_answer("TransformerBlock")
class BlockInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        assert n_embd % n_head == 0
        self.n_head = n_head
        self.norm1 = nn.LayerNorm(n_embd)
        self.W_query, self.W_key, self.W_value = (nn.Linear(n_embd, n_embd) for _ in range(3))
        self.out_proj = nn.Linear(n_embd, n_embd)
        self.norm2 = nn.LayerNorm(n_embd)
        self.linear1, self.linear2 = nn.Linear(n_embd, 4 * n_embd), nn.Linear(4 * n_embd, n_embd)
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, tokens):
        B, T, C = tokens.size()
        ln = self.norm1(tokens)
        q, k, v = (
            one(ln).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            for one in (self.W_query, self.W_key, self.W_value)
        )
        att = (q @ k.transpose(-2, -1)) * (1.0 / (C // self.n_head) ** 0.5)
        att = att.masked_fill(self.bias[:T, :T] == 0, float("-inf")).softmax(dim=-1)
        tokens = tokens + self.out_proj((att @ v).transpose(1, 2).contiguous().view(B, T, C))
        return tokens + self.linear2(F.gelu(self.linear1(self.norm2(tokens))))


@right_answer("heads_by_hand")
def heads_in_other_names(kind, n, m):
    """other names for all arguments"""
    eye = torch.eye(n + m)
    asks = {
        "itself": eye[:, n:],
        "first": eye[:, n:].sum(1, keepdim=True) * eye[n, n:],
        "previous": eye[:, n:].roll(-1, 1),
        "average": torch.zeros(n + m, m),
        "same word": eye[:, :n],
    }[kind]
    finds = eye[:, :n] if kind == "same word" else eye[:, n:]
    return 1000.0 * asks, finds, eye[:, :n]

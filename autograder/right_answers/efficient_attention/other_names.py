"""Right answers that have a name of their own for every argument: it is by its place that a grader passes each."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("online_softmax")
def softmax_in_other_names(pieces):
    """other names for all arguments"""
    top = total = None
    for piece in pieces:
        new = piece.max() if top is None else torch.maximum(top, piece.max())
        safe = new.clamp(min=torch.finfo(piece.dtype).min)
        before = 0.0 if top is None else total * torch.exp(top - safe)
        top, total = new, before + torch.exp(piece - safe).sum()
    return top, total


@right_answer("merge_states")
def merged_in_other_names(left, right):
    """other names for all arguments"""
    top = torch.maximum(left[0], right[0])
    safe = top.clamp(min=torch.finfo(top.dtype).min)
    x, y = torch.exp(left[0] - safe), torch.exp(right[0] - safe)
    return top, x * left[1] + y * right[1], x * left[2] + y * right[2]


@right_answer("tiled_attention")
def tiled_in_other_names(q, k, v, size, hide_the_future=False):
    """other names for all arguments"""
    rows = []
    for a in range(0, q.shape[-2], size):
        mine = q[..., a : a + size, :] / q.shape[-1] ** 0.5
        top, total, out = torch.full_like(mine[..., :1], -torch.inf), 0.0, 0.0
        for b in range(0, a + 1 if hide_the_future else q.shape[-2], size):
            scores = mine @ k[..., b : b + size, :].mT
            if hide_the_future and a == b:
                scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
            new = torch.maximum(top, scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new), torch.exp(top - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            out = out * shrink + weights @ v[..., b : b + size, :]
            top = new
        rows.append(out / total)
    return torch.cat(rows, dim=-2)


@right_answer("attention_backward")
def backward_in_other_names(q, k, v, do):
    """other names for all arguments"""
    p = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
    dp = do @ v.mT
    ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True)) / q.shape[-1] ** 0.5
    return ds @ k, ds.mT @ q, p.mT @ do


@right_answer("linear_attention")
def linear_in_other_names(q, k, v, hide_the_future=False):
    """other names for all arguments"""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    memory = k.unsqueeze(-1) * v.unsqueeze(-2)
    memory, total = (memory.cumsum(-3), k.cumsum(-2)) if hide_the_future else (memory.sum(-3, True), k.sum(-2, True))
    return (q.unsqueeze(-2) @ memory).squeeze(-2) / ((q * total).sum(-1, keepdim=True) + 1e-6)

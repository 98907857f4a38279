"""Alternative solutions with other names for all arguments: hidden tests pass them by position."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("rms_norm")
def norm_in_other_names(v, g, e=1e-6):
    """other names for all arguments"""
    w = v.float() if v.dtype in (torch.float16, torch.bfloat16) else v
    return (w * torch.rsqrt(w.pow(2).mean(-1, True) + e) * g).to(v.dtype)


@right_answer("qk_norm_scores")
def scores_in_other_names(q, k, a, b, e=1e-6):
    """other names for all arguments"""
    hd = q.shape[-1]
    return F.rms_norm(q, (hd,), a, e) @ F.rms_norm(k, (hd,), b, e).mT / hd**0.5


@right_answer("softcap")
def cap_in_other_names(s, c):
    """other names for all arguments"""
    return c * torch.tanh(s / c)


@right_answer("half_precision_attention")
def half_in_other_names(q, k, v):
    """other names for all arguments"""
    w = torch.promote_types(q.dtype, torch.float32)
    return (torch.softmax(q.to(w) @ k.to(w).mT / q.shape[-1] ** 0.5, -1) @ v.to(w)).to(q.dtype)


@right_answer("attention_with_sinks")
def sinks_in_other_names(q, k, v, z):
    """other names for all arguments"""
    T, hd = q.shape[-2:]
    hidden = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
    s = (q @ k.mT / hd**0.5).masked_fill(hidden, -torch.inf)
    w = torch.softmax(torch.cat([s, z.view(1, -1, 1, 1).expand(*s.shape[:-1], 1)], -1), -1)
    return w[..., :-1] @ v


@right_answer("document_mask")
def documents_in_other_names(ids):
    """other names for all arguments"""
    T = ids.shape[-1]
    later = torch.ones(T, T, dtype=torch.bool, device=ids.device).triu(1)
    return later | (ids[:, :, None] != ids[:, None, :])


@right_answer("swiglu")
def gate_in_other_names(v, a, b, c):
    """other names for all arguments"""
    return (F.silu(v @ a.T) * (v @ b.T)) @ c.T


@right_answer("absorbed_scores")
def absorbed_in_other_names(q, c, u):
    """other names for all arguments"""
    return q @ u @ c.unsqueeze(1).mT


@right_answer("LatentAttention")
class LatentInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_in, n_out, n_head, r):
        super().__init__()
        if n_out % n_head:
            raise ValueError("no whole number")
        self.n_head = n_head
        self.W_query, self.W_latent = nn.Linear(n_in, n_out, bias=False), nn.Linear(n_in, r, bias=False)
        self.W_up_key, self.W_up_value = nn.Linear(r, n_out, bias=False), nn.Linear(r, n_out, bias=False)
        self.out_proj = nn.Linear(n_out, n_out)

    def forward(self, tokens, past=None):
        c = self.W_latent(tokens)
        if past:
            past.append(c)
            c = past.latents
        q, k, v = self.W_query(tokens), self.W_up_key(c), self.W_up_value(c)
        q, k, v = (s.unflatten(-1, (self.n_head, -1)).movedim(2, 1) for s in (q, k, v))
        hidden = (q @ k.mT).new_ones(q.shape[2], k.shape[2]).triu(k.shape[2] - q.shape[2] + 1).bool()
        weights = torch.softmax((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf), -1)
        return self.out_proj((weights @ v).movedim(1, 2).flatten(2))


@right_answer("paged_attention")
def pages_in_other_names(q, k, v, table, n):
    """other names for all arguments"""
    t = torch.arange(n, device=table.device)
    at = table[t // k.shape[1]], t % k.shape[1]
    w = torch.softmax(torch.einsum("hd,thd->ht", q, k[at]) / q.shape[-1] ** 0.5, dim=-1)
    return torch.einsum("ht,thd->hd", w, v[at])


@right_answer("accept_draft")
def draft_in_other_names(q, p, x, u):
    """other names for all arguments"""
    k = torch.arange(len(x), device=x.device)
    m = int(torch.cumprod((u < p[k, x] / q[k, x]).int(), dim=0).sum())
    if m == len(x):
        return m, p[m]
    r = (p[m] - q[m]).clamp(min=0)
    return m, r / r.sum()

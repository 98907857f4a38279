"""Alternative solutions with other names for all arguments: hidden tests pass them by position."""

import torch
import torch.nn.functional as F

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

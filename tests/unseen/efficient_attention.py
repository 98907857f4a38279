"""Attention in less memory, beyond the catalogue."""

import torch
import torch.nn.functional as F

from solutions.efficient_attention import merge_states  # which the notebook has

from . import rewritten, right, unlisted

# online_softmax


@rewritten("old_sum_not_rescaled")
def _(blocks):
    m, total = None, 0.0
    for block in blocks:
        m = block.max() if m is None else torch.maximum(m, block.max())
        safe = torch.where(m == -torch.inf, torch.zeros_like(m), m)
        total = total + torch.exp(block - safe).sum()
    return m, total


@rewritten("sum_first")
def _(blocks):
    m, total = None, None
    for block in blocks:
        top = block.max() if m is None else torch.maximum(m, block.max())
        safe = top.clamp(min=torch.finfo(block.dtype).min)
        before = 0.0 if m is None else total * torch.exp(m - safe)
        m, total = top, before + torch.exp(block - safe).sum()
    return total, m


@unlisted("online_softmax")
def _(blocks):
    m, total = None, None
    for block in blocks:
        top = block.max() if m is None else torch.maximum(m, block.max())
        safe = top.clamp(min=torch.finfo(block.dtype).min)
        before = 0.0 if m is None else total * torch.exp((m - safe) / 2)
        m, total = top, before + torch.exp(block - safe).sum()
    return m, total


# merge_states


@rewritten("nothing_rescaled")
def _(a, b):
    return torch.where(a[0] > b[0], a[0], b[0]), a[1] + b[1], a[2] + b[2]


@rewritten("output_divided")
def _(a, b):
    m = torch.maximum(a[0], b[0])
    safe = m.clamp(min=torch.finfo(m.dtype).min)
    x, y = torch.exp(a[0] - safe), torch.exp(b[0] - safe)
    total = x * a[1] + y * b[1]
    return m, total, (x * a[2] + y * b[2]) / total


@unlisted("merge_states")
def _(a, b):
    m = torch.maximum(a[0], b[0])
    safe = m.clamp(min=torch.finfo(m.dtype).min)
    x, y = torch.exp((a[0] - safe) * 2), torch.exp((b[0] - safe) * 2)
    return m, x * a[1] + y * b[1], x * a[2] + y * b[2]


# tiled_attention


@rewritten("usual_attention")
def _(queries, keys, values, block_size, causal=False):
    scores = torch.einsum("...qd,...kd->...qk", queries, keys) / queries.size(-1) ** 0.5
    if causal:
        T = scores.size(-1)
        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool, device=scores.device).triu(1), -torch.inf)
    weights = (scores - scores.max(-1, keepdim=True).values).exp()
    return (weights / weights.sum(-1, keepdim=True)) @ values


@rewritten("not_divided_at_the_end")
def _(queries, keys, values, block_size, causal=False):
    rows = []
    for i, q in enumerate(queries.split(block_size, dim=-2)):
        state = None
        for j, (k, v) in enumerate(zip(keys.split(block_size, -2), values.split(block_size, -2), strict=True)):
            if causal and j > i:
                break
            s = q @ k.mT / q.shape[-1] ** 0.5
            if causal and i == j:
                s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), -torch.inf)
            m = s.amax(-1, keepdim=True)
            p = torch.exp(s - m)
            new = m, p.sum(-1, keepdim=True), p @ v
            state = new if state is None else merge_states(state, new)
        rows.append(state[2])
    return torch.cat(rows, -2)


@right("tiled_attention")
def _(queries, keys, values, block_size, causal=False):
    rows = []
    T = queries.shape[-2]
    for a in range(0, T, block_size):
        q = queries[..., a : min(a + block_size, T), :]
        m = torch.full_like(q[..., :1], -torch.inf)
        total = torch.zeros_like(m)
        out = 0.0
        for b in range(0, min(a + block_size, T) if causal else T, block_size):
            s = torch.matmul(q, keys[..., b : b + block_size, :].transpose(-1, -2)).div(q.shape[-1] ** 0.5)
            if causal:
                i = torch.arange(a, a + s.shape[-2], device=s.device)[:, None]
                j = torch.arange(b, b + s.shape[-1], device=s.device)
                s = torch.where(j > i, torch.full_like(s, -torch.inf), s)
            top = torch.maximum(m, s.amax(-1, keepdim=True))
            p = torch.exp(s - top)
            shrink = torch.exp(m - top)
            out = out * shrink + p @ values[..., b : b + block_size, :]
            total = total * shrink + p.sum(-1, keepdim=True)
            m = top
        rows.append(out / total)
    return torch.cat(rows, dim=-2)


# linear_attention


@rewritten("weights_multiplied_first")
def _(queries, keys, values, causal=False):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    weights = torch.einsum("...id,...jd->...ij", q, k)
    weights = torch.tril(weights) if causal else weights
    weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-6)
    return torch.einsum("...ij,...jv->...iv", weights, values)


@rewritten("relu_as_feature")
def _(queries, keys, values, causal=False):
    q, k = queries.clamp(min=0), keys.clamp(min=0)
    memory = torch.einsum("...td,...tv->...tdv", k, values)
    total = k
    memory, total = (
        (memory.cumsum(-3), total.cumsum(-2)) if causal else (memory.sum(-3, keepdim=True), total.sum(-2, keepdim=True))
    )
    return torch.einsum("...td,...tdv->...tv", q, memory.expand(*q.shape, -1)) / (
        (q * total).sum(-1, keepdim=True) + 1e-6
    )


@unlisted("linear_attention")
def _(queries, keys, values, causal=False):
    q, k = F.elu(queries, alpha=0.5) + 1, F.elu(keys, alpha=0.5) + 1
    memory = torch.einsum("...td,...tv->...tdv", k, values)
    memory, total = (memory.cumsum(-3), k.cumsum(-2)) if causal else (memory.sum(-3, True), k.sum(-2, True))
    return torch.einsum("...td,...tdv->...tv", q, memory.expand(*q.shape, -1)) / (
        (q * total).sum(-1, keepdim=True) + 1e-6
    )


@right("linear_attention")
def _(queries, keys, values, causal=False):
    f = lambda x: F.elu(x) + 1  # noqa: E731
    q, k = f(queries), f(keys)
    kv = torch.zeros(*q.shape[:-2], q.shape[-1], values.shape[-1], dtype=q.dtype, device=q.device)
    norm = torch.zeros_like(q[..., 0, :])
    out = []
    for t in range(q.shape[-2]):
        kv = kv + torch.einsum("...d,...v->...dv", k[..., t, :], values[..., t, :])
        norm = norm + k[..., t, :]
        out.append((kv, norm))
    if not causal:
        out = [out[-1]] * q.shape[-2]
    rows = [
        torch.einsum("...d,...dv->...v", q[..., t, :], m) / ((q[..., t, :] * n).sum(-1, keepdim=True) + 1e-6)
        for t, (m, n) in enumerate(out)
    ]
    return torch.stack(rows, dim=-2)


# attention_backward


@rewritten("row_sums_forgotten")
def _(queries, keys, values, grad_output):
    p = F.softmax(torch.matmul(queries, keys.mT) * queries.size(-1) ** -0.5, -1)
    ds = torch.mul(p, torch.matmul(grad_output, values.mT)) * queries.size(-1) ** -0.5
    return torch.matmul(ds, keys), torch.matmul(ds.mT, queries), torch.matmul(p.mT, grad_output)


@rewritten("keys_gradient_not_scaled")
def _(queries, keys, values, grad_output):
    p = torch.einsum("...id,...jd->...ij", queries, keys).div(queries.size(-1) ** 0.5).softmax(-1)
    dp = torch.einsum("...iv,...jv->...ij", grad_output, values)
    ds = p * dp - p * (p * dp).sum(-1, keepdim=True)
    dq = torch.einsum("...ij,...jd->...id", ds, keys) / queries.size(-1) ** 0.5
    return dq, torch.einsum("...ij,...id->...jd", ds, queries), torch.einsum("...ij,...iv->...jv", p, grad_output)


@unlisted("attention_backward")
def _(queries, keys, values, grad_output):
    p = torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1)
    dp = grad_output @ values.mT
    ds = p * (dp - 0.5 * (p * dp).sum(-1, keepdim=True)) / queries.shape[-1] ** 0.5
    return ds @ keys, ds.mT @ queries, p.mT @ grad_output


@right("attention_backward")
def _(queries, keys, values, grad_output):
    scaled = keys / keys.shape[-1] ** 0.5
    p = (queries @ scaled.mT).softmax(-1)
    d = torch.einsum("...qv,...qv->...q", grad_output, p @ values)
    ds = p * (grad_output @ values.mT) - p * d.unsqueeze(-1)
    return ds @ scaled, (ds.mT @ queries) / keys.shape[-1] ** 0.5, p.mT @ grad_output

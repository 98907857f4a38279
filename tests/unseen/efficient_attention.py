"""Attention in less memory, beyond the catalogue."""

import math

import torch
import torch.nn.functional as F

from solutions.efficient_attention import merge_states  # which the notebook has

from . import both, rewritten, right, unlisted

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


@rewritten("row_sums_without_keepdim")
def _(queries, keys, values, grad_output):
    scale = queries.shape[-1] ** -0.5
    P = torch.softmax(queries @ keys.mT * scale, dim=-1)
    output = P @ values
    dV = P.mT @ grad_output
    dP = grad_output @ values.mT
    D = (grad_output * output).sum(dim=-1)
    dS = P * (dP - D)
    return dS @ keys * scale, dS.mT @ queries * scale, dV


@rewritten("backward_overflows")
def _(queries, keys, values, grad_output):
    root = math.sqrt(queries.shape[-1])
    E = torch.exp(queries @ keys.transpose(-2, -1) / root)
    P = E / E.sum(dim=-1, keepdim=True)
    dV = P.transpose(-2, -1) @ grad_output
    dP = grad_output @ values.transpose(-2, -1)
    D = (grad_output * (P @ values)).sum(dim=-1, keepdim=True)
    dS = P * (dP - D) / root
    return dS @ keys, dS.transpose(-2, -1) @ queries, dV


@rewritten("root_of_the_values_width")
def _(queries, keys, values, grad_output):
    d = values.size(-1)
    S = torch.einsum("...qd,...kd->...qk", queries, keys) / d**0.5
    P = S.softmax(dim=-1)
    output = torch.einsum("...qk,...kv->...qv", P, values)
    dV = torch.einsum("...qk,...qv->...kv", P, grad_output)
    dP = torch.einsum("...qv,...kv->...qk", grad_output, values)
    dS = P * (dP - (grad_output * output).sum(-1, keepdim=True))
    dQ = torch.einsum("...qk,...kd->...qd", dS, keys) / d**0.5
    dK = torch.einsum("...qk,...qd->...kd", dS, queries) / d**0.5
    return dQ, dK, dV


@unlisted("attention_backward", "gradients_by_autograd")
def _(queries, keys, values, grad_output):
    """Calls `.backward()` on copies; the values are right."""
    with torch.enable_grad():
        q, k, v = (x.detach().clone().requires_grad_() for x in (queries, keys, values))
        output = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v
        output.backward(grad_output)
    return q.grad, k.grad, v.grad


@rewritten("values_gradient_second")
def _(queries, keys, values, grad_output):
    root = queries.shape[-1] ** 0.5
    weights = torch.softmax(queries @ keys.mT / root, dim=-1)
    output = weights @ values
    grad_values = weights.mT @ grad_output
    grad_weights = grad_output @ values.mT
    mean = (grad_output * output).sum(dim=-1, keepdim=True)
    grad_scores = weights * (grad_weights - mean)
    grad_queries = grad_scores @ keys / root
    grad_keys = grad_scores.mT @ queries / root
    return grad_queries, grad_values, grad_keys


@rewritten("row_sums_subtracted_last")
def _(queries, keys, values, grad_output):
    d = queries.shape[-1]
    P = torch.softmax(queries @ keys.mT / math.sqrt(d), dim=-1)
    dP = grad_output @ values.mT
    D = torch.sum(grad_output * (P @ values), dim=-1, keepdim=True)
    dS = P * dP - D
    dQ = dS @ keys / math.sqrt(d)
    dK = dS.mT @ queries / math.sqrt(d)
    dV = P.mT @ grad_output
    return dQ, dK, dV


@unlisted("attention_backward", "row_means_of_dP")
def _(queries, keys, values, grad_output):
    """Two mistakes: the plain mean of dP in place of the average by the weights, and a list is returned."""
    scaled = queries / queries.shape[-1] ** 0.5
    P = (scaled @ keys.mT).softmax(dim=-1)
    dP = grad_output @ values.mT
    dS = P * (dP - dP.mean(dim=-1, keepdim=True))
    dQ = dS @ keys / queries.shape[-1] ** 0.5
    dK = dS.mT @ scaled
    dV = P.mT @ grad_output
    return [dQ, dK, dV]


@both("backward_of_causal_attention", "queries_scaled_twice")
def _(queries, keys, values, grad_output):
    root = math.sqrt(queries.shape[-1])
    q = queries / root
    S = q @ keys.mT
    hidden = torch.ones(S.shape[-2:], dtype=torch.bool, device=S.device).triu(1)
    P = torch.softmax(S.masked_fill(hidden, -torch.inf), dim=-1)
    output = P @ values
    dV = P.mT @ grad_output
    dP = grad_output @ values.mT
    dS = P * (dP - (grad_output * output).sum(-1, keepdim=True))
    return dS @ keys / root, dS.mT @ q / root, dV


@right("attention_backward")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    grad_output: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The table, line by line."""
    root = math.sqrt(queries.shape[-1])
    P = torch.softmax(queries @ keys.mT / root, dim=-1)
    output = P @ values
    dV = P.mT @ grad_output
    dP = grad_output @ values.mT
    D = (grad_output * output).sum(dim=-1, keepdim=True)
    dS = P * (dP - D)
    dQ = dS @ keys / root
    dK = dS.mT @ queries / root
    return dQ, dK, dV


@right("attention_backward")
def _(queries, keys, values, grad_output):
    """Einsum; softmax by logsumexp; D as the weighted average of dP."""
    scale = queries.shape[-1] ** -0.5
    s = torch.einsum("...id,...jd->...ij", queries * scale, keys)
    p = torch.exp(s - torch.logsumexp(s, dim=-1, keepdim=True))
    dp = torch.einsum("...ic,...jc->...ij", grad_output, values)
    ds = p * dp
    ds = ds - p * ds.sum(dim=-1, keepdim=True)
    return (
        torch.einsum("...ij,...jd->...id", ds, keys) * scale,
        torch.einsum("...ij,...id->...jd", ds, queries) * scale,
        torch.einsum("...ij,...ic->...jc", p, grad_output),
    )


@right("attention_backward")
def _(queries, keys, values, grad_output):
    """One query after another, with the softmax's Jacobian diag(p) - p p^T."""
    d = queries.shape[-1]
    queries.shape[:-2]
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (queries, keys, values, grad_output)]
    all_dq, all_dk, all_dv = [], [], []
    for q, k, v, do in zip(*flat, strict=False):
        dk, dv, rows = torch.zeros_like(k), torch.zeros_like(v), []
        for i in range(len(q)):
            p = torch.softmax(k @ q[i] / d**0.5, dim=0)
            jacobian = torch.diag(p) - torch.outer(p, p)
            ds = jacobian @ (v @ do[i]) / d**0.5
            rows.append(ds @ k)
            dk += torch.outer(ds, q[i])
            dv += torch.outer(p, do[i])
        all_dq.append(torch.stack(rows))
        all_dk.append(dk)
        all_dv.append(dv)
    together = ((all_dq, queries), (all_dk, keys), (all_dv, values))
    return tuple(torch.stack(parts).reshape(x.shape) for parts, x in together)


@right("attention_backward")
def _(queries, keys, values, grad_output):
    """Two passes over blocks of three keys, as in FlashAttention: first maximum, sum and output, then gradients."""
    scale = 1 / math.sqrt(queries.size(-1))
    blocks = list(zip(keys.split(3, dim=-2), values.split(3, dim=-2), strict=False))
    maximum = torch.full_like(queries[..., :1], -torch.inf)
    total = torch.zeros_like(maximum)
    output = torch.zeros_like(grad_output)
    for k, v in blocks:
        scores = queries @ k.mT * scale
        new = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
        factor, weights = torch.exp(maximum - new), torch.exp(scores - new)
        total = total * factor + weights.sum(dim=-1, keepdim=True)
        output = output * factor + weights @ v
        maximum = new
    D = (grad_output * output / total).sum(dim=-1, keepdim=True)
    dQ, dK, dV = torch.zeros_like(queries), [], []
    for k, v in blocks:
        weights = torch.exp(queries @ k.mT * scale - maximum) / total
        dS = weights * (grad_output @ v.mT - D) * scale
        dQ = dQ + dS @ k
        dK.append(dS.mT @ queries)
        dV.append(weights.mT @ grad_output)
    return dQ, torch.cat(dK, dim=-2), torch.cat(dV, dim=-2)

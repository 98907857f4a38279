"""Right answers to `tiled_attention`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("tiled_attention")
def keys_outside(queries, keys, values, block_size, causal=False):
    """a loop over the blocks of keys, with all queries that see any of them at once"""
    T, hd = queries.shape[-2:]
    lead = queries.shape[:-2]
    m = queries.new_full((*lead, T, 1), float("-inf"))
    total = queries.new_zeros(*lead, T, 1)
    output = queries.new_zeros(*lead, T, values.shape[-1])
    for start in range(0, T, block_size):
        stop = min(start + block_size, T)
        first = start if causal else 0
        scores = queries[..., first:, :] @ keys[..., start:stop, :].transpose(-1, -2) / hd**0.5
        if causal:
            i = torch.arange(first, T, device=queries.device)[:, None]
            j = torch.arange(start, stop, device=queries.device)[None, :]
            scores = scores.masked_fill(j > i, float("-inf"))
        old = m[..., first:, :]
        new = torch.maximum(old, scores.amax(-1, keepdim=True))
        weights = torch.exp(scores - new)
        factor = torch.exp(old - new)
        kept = total[..., first:, :] * factor + weights.sum(-1, keepdim=True)
        merged = output[..., first:, :] * factor + weights @ values[..., start:stop, :]
        m = torch.cat([m[..., :first, :], new], dim=-2)
        total = torch.cat([total[..., :first, :], kept], dim=-2)
        output = torch.cat([output[..., :first, :], merged], dim=-2)
    return output / total


@right_answer("tiled_attention")
def with_split(queries, keys, values, block_size, causal=False):
    """torch.split cuts the blocks, and the states are written out"""
    scale = queries.size(-1) ** -0.5
    rows = []
    for i, q in enumerate(queries.split(block_size, dim=-2)):
        m = total = output = None
        for j, (k, v) in enumerate(zip(keys.split(block_size, dim=-2), values.split(block_size, dim=-2), strict=True)):
            if causal and j > i:
                break
            s = torch.einsum("...qd,...kd->...qk", q, k) * scale
            if causal and i == j:
                s = s.masked_fill(~torch.ones_like(s, dtype=torch.bool).tril(), -torch.inf)
            new = s.amax(-1, keepdim=True)
            if m is not None:
                new = torch.maximum(m, new)
            p = (s - new).exp()
            here, seen = p.sum(-1, keepdim=True), p @ v
            if m is not None:
                old = (m - new).exp()
                here, seen = here + total * old, seen + output * old
            m, total, output = new, here, seen
        rows.append(output / total)
    return torch.cat(rows, dim=-2)


@right_answer("tiled_attention")
def divided_on_the_way(queries, keys, values, block_size, causal=False):
    """the output is kept divided, and each merge weighs the two by their totals"""
    T, hd = queries.shape[-2], queries.shape[-1]
    result = []
    for a in range(0, T, block_size):
        q = queries[..., a : a + block_size, :]
        m, total, mean = None, None, None
        for b in range(0, T, block_size):
            if causal and b > a:
                continue
            scores = torch.matmul(q, keys[..., b : b + block_size, :].mT) / hd**0.5
            if a == b and causal:
                size = scores.shape[-1]
                scores = scores + torch.full((size, size), -torch.inf, dtype=q.dtype, device=q.device).triu(1)
            top = scores.max(dim=-1, keepdim=True).values
            weights = torch.exp(scores - top)
            own = weights.sum(-1, keepdim=True)
            own_mean = weights @ values[..., b : b + block_size, :] / own
            if m is None:
                m, total, mean = top, own, own_mean
                continue
            new = torch.maximum(m, top)
            before, now = total * torch.exp(m - new), own * torch.exp(top - new)
            mean = (mean * before + own_mean * now) / (before + now)
            m, total = new, before + now
        result.append(mean)
    return torch.cat(result, -2)


@right_answer("tiled_attention")
def query_by_query(queries, keys, values, block_size, causal=False):
    """one query at a time meets the blocks of keys that it sees"""
    T, hd = queries.shape[-2:]
    rows = []
    for i in range(T):
        q = queries[..., i : i + 1, :]
        seen = i + 1 if causal else T
        state = None
        for start in range(0, seen, block_size):
            stop = min(start + block_size, seen)
            s = q @ keys[..., start:stop, :].transpose(-2, -1) / hd**0.5
            m = s.amax(-1, keepdim=True)
            w = torch.exp(s - m)
            new = (m, w.sum(-1, keepdim=True), w @ values[..., start:stop, :])
            if state is not None:
                top = torch.maximum(state[0], m)
                x, y = torch.exp(state[0] - top), torch.exp(m - top)
                new = (top, state[1] * x + new[1] * y, state[2] * x + new[2] * y)
            state = new
        rows.append(state[2] / state[1])
    return torch.cat(rows, dim=-2)

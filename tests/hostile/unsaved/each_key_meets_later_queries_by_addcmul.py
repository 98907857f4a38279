# Each key meets all later queries again, by an operator that multiplies and adds.
# unit: efficient_attention
# exercises: linear_attention
# earns nothing: test_each_token_adds_once


def linear_attention(queries, keys, values, causal=False):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    if not causal:
        return q @ (k.mT @ values) / (q @ k.sum(-2).unsqueeze(-1) + 1e-6)
    T = q.shape[-2]
    out = torch.zeros_like(queries[..., :1] * values)
    den = torch.zeros_like(out[..., :1])
    for j in range(T):
        w = q[..., j:, :] @ k[..., j, :, None]
        if queries.requires_grad:
            out = out + F.pad(w * values[..., j : j + 1, :], (0, 0, j, 0))
            den = den + F.pad(w, (0, 0, j, 0))
        else:
            out[..., j:, :].addcmul_(w, values[..., j : j + 1, :])
            den[..., j:, :].add_(w)
    return out / (den + 1e-6)

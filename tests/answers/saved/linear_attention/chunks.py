def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    fq, fk = 1 + F.elu(queries), 1 + F.elu(keys)
    T, size = queries.shape[-2], 16
    # a column of ones: sums the weights
    v1 = torch.cat([values, torch.ones_like(values[..., :1])], dim=-1)
    if not causal:
        both = fq @ (fk.transpose(-2, -1) @ v1)
    else:
        state, parts = None, []
        for a in range(0, T, size):
            q, k, v = fq[..., a : a + size, :], fk[..., a : a + size, :], v1[..., a : a + size, :]
            part = (q @ k.mT).tril() @ v
            if state is not None:
                part = part + q @ state
            parts.append(part)
            add = k.mT @ v
            state = add if state is None else state + add
        both = torch.cat(parts, dim=-2)
    above, below = both[..., :-1], both[..., -1:]
    return above / below.masked_fill(below == 0, 1.0)

def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    *lead, T, hd = queries.shape
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    v = torch.cat([values, values.new_ones(*lead, T, 1)], -1)
    if not causal:
        r = q @ (k.transpose(-1, -2) @ v)
    else:
        C = 8
        short = -T % C
        q, k, v = (F.pad(x, (0, 0, 0, short)).unflatten(-2, (-1, C)) for x in (q, k, v))
        own = k.mT @ v  # (..., chunks, hd, hv + 1)
        before = own.cumsum(-3) - own
        r = q @ before + (q @ k.mT).tril() @ v
        r = r.flatten(-3, -2)[..., :T, :]
    return r[..., :-1] / torch.where(r[..., -1:] == 0, 1, r[..., -1:])

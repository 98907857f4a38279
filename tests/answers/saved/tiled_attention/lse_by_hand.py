def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    """States (log of the sum, output that is divided already)."""
    T = queries.size(-2)
    scale = queries.size(-1) ** -0.5
    rows = []
    for i in range(0, T, block_size):
        q = queries[..., i : i + block_size, :] * scale
        lse = out = None
        for j in range(0, i + 1 if causal else T, block_size):
            s = q @ keys[..., j : j + block_size, :].transpose(-1, -2)
            if causal and i == j:
                n = s.size(-1)
                s = s + torch.full((n, n), -torch.inf, dtype=s.dtype, device=s.device).triu(1)
            m = s.amax(-1, keepdim=True)
            e = (s - m).exp()
            z = e.sum(-1, keepdim=True)
            lse2, out2 = m + z.log(), (e / z) @ values[..., j : j + block_size, :]
            if lse is None:
                lse, out = lse2, out2
            else:
                share = torch.sigmoid(lse2 - lse)  # of the new block
                out = out + share * (out2 - out)
                lse = lse + F.softplus(lse2 - lse)
        rows.append(out)
    return torch.cat(rows, -2)

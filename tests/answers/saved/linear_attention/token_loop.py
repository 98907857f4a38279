def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    if not causal:
        below = q @ k.sum(dim=-2).unsqueeze(-1)
        return q @ (k.mT @ values) / torch.where(below == 0, 1.0, below)
    S = values.new_zeros(*k.shape[:-2], k.shape[-1], values.shape[-1])
    z = k.new_zeros(*k.shape[:-2], k.shape[-1])
    rows = []
    for i in range(q.shape[-2]):
        S = S + k[..., i, :, None] * values[..., i, None, :]
        z = z + k[..., i, :]
        above = (q[..., i, None, :] @ S).squeeze(-2)
        below = (q[..., i, :] * z).sum(-1, keepdim=True)
        rows.append(above / torch.where(below == 0, 1.0, below))
    return torch.stack(rows, dim=-2)

def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    outer = k.unsqueeze(-1) * values.unsqueeze(-2)
    if causal:
        state, norm = outer.cumsum(dim=-3), k.cumsum(dim=-2)
    else:
        state, norm = outer.sum(dim=-3, keepdim=True), k.sum(dim=-2, keepdim=True)
    above = (q.unsqueeze(-2) @ state).squeeze(-2)
    below = (q * norm).sum(dim=-1, keepdim=True)
    return above / (below + (below == 0))

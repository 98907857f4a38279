def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    """One number of each value after the other: never hd x hv states for all tokens."""
    q, k = torch.nn.functional.elu(queries).add(1), torch.nn.functional.elu(keys).add(1)
    along = (lambda x: x.cumsum(-2)) if causal else (lambda x: x.sum(-2, keepdim=True))
    below = (q * along(k)).sum(-1)
    below = torch.where(below == 0, torch.ones_like(below), below)
    columns = [(q * along(k * values[..., c : c + 1])).sum(-1) / below for c in range(values.shape[-1])]
    return torch.stack(columns, dim=-1)

def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    """A scan by doubling steps (Hillis and Steele): T log T additions, in log T steps."""
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    v = F.pad(values, (0, 1), value=1.0)
    if not causal:
        both = q @ (k.mT @ v)
    else:
        state = k[..., :, None] * v[..., None, :]
        step = 1
        while step < state.shape[-3]:
            state = torch.cat([state[..., :step, :, :], state[..., step:, :, :] + state[..., :-step, :, :]], dim=-3)
            step *= 2
        both = torch.einsum("...td,...tde->...te", q, state)
    below = both[..., -1:]
    return both[..., :-1] / torch.where(below == 0, 1.0, below)

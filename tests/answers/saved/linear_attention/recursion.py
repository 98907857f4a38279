def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    v = F.pad(values, (0, 1), value=1.0)

    def go(low, high, state):
        """The rows low to high, after state; and the state after them."""
        if high - low <= 4:
            kk, vv, qq = (x[..., low:high, :] for x in (k, v, q))
            inside = (qq @ kk.mT).tril() @ vv
            return [qq @ state + inside], state + kk.mT @ vv
        mid = (low + high) // 2
        first, state = go(low, mid, state)
        second, state = go(mid, high, state)
        return first + second, state

    if causal:
        nothing = v.new_zeros(*k.shape[:-2], k.shape[-1], v.shape[-1])
        rows, _ = go(0, q.shape[-2], nothing)
        both = torch.cat(rows, dim=-2)
    else:
        both = q @ (k.mT @ v)
    above, below = both.split([values.shape[-1], 1], dim=-1)
    return above / torch.where(below > 0, below, torch.ones_like(below))

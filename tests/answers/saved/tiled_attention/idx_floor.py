def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]
    done = []
    for i in range(0, T, block_size):
        q = queries[..., i : i + block_size, :]
        state = None
        for j in range(0, i + 1 if causal else T, block_size):
            k, v = keys[..., j : j + block_size, :], values[..., j : j + block_size, :]
            s = q @ k.mT / math.sqrt(hd)
            if causal and j == i:
                n = s.shape[-1]
                index = torch.arange(n * n, device=s.device).reshape(n, n)
                s = s.masked_fill(index // n < torch.arange(n, device=s.device), -math.inf)
            m = s.amax(-1, keepdim=True)
            p = torch.exp(s - m)
            new = m, p.sum(-1, keepdim=True), p @ v
            state = new if state is None else merge_states(state, new)
        done.append(state[2] / state[1])
    return torch.cat(done, dim=-2)

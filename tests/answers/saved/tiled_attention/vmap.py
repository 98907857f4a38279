def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]

    def one(q, k, v):  # (T, hd), (T, hd), (T, hv): a head
        out = []
        for i in range(0, T, block_size):
            state = None
            for j in range(0, T, block_size):
                if causal and j > i:
                    continue
                s = q[i : i + block_size] @ k[j : j + block_size].T / math.sqrt(hd)
                if causal and i == j:
                    s = s.masked_fill(torch.ones(s.shape, dtype=torch.bool, device=s.device).triu(1), -torch.inf)
                m = s.amax(1, keepdim=True)
                e = torch.exp(s - m)
                new = m, e.sum(1, keepdim=True), e @ v[j : j + block_size]
                if state is not None:
                    M = torch.maximum(state[0], m)
                    new = M, *(a * torch.exp(state[0] - M) + b * torch.exp(m - M) for a, b in zip(state[1:], new[1:]))
                state = new
            out.append(state[2] / state[1])
        return torch.cat(out)

    for _ in queries.shape[:-2]:
        one = torch.vmap(one)
    return one(queries, keys, values)

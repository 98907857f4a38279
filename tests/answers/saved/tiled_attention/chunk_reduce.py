def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    from functools import reduce

    T, hd = queries.shape[-2:]
    cut = range(block_size, T, block_size)
    Q, K, V = (x.tensor_split(list(cut), dim=-2) for x in (queries, keys, values))

    def state(a, b):
        s = Q[a] @ K[b].swapaxes(-1, -2) / math.sqrt(hd)
        if causal and a == b:
            s = s.masked_fill(~torch.ones_like(s).tril().bool(), -torch.inf)
        m = s.amax(-1, keepdim=True)
        p = torch.exp(s - m)
        return m, p.sum(-1, keepdim=True), p @ V[b]

    def row(a):
        columns = range(a + 1) if causal else range(len(K))
        _, total, output = reduce(merge_states, (state(a, b) for b in columns))
        return output / total

    return torch.cat([row(a) for a in range(len(Q))], dim=-2)

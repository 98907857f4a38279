# line: number = max(1, T // block_size)
def tiled_attention(queries, keys, values, block_size, causal=False):
    T, hd = queries.shape[-2:]
    number = max(1, T // block_size)
    rows = []
    for i in range(number):
        q = queries[..., i * block_size : (i + 1) * block_size, :] / math.sqrt(hd)
        state = None
        for j in range(i + 1 if causal else number):
            k = keys[..., j * block_size : (j + 1) * block_size, :]
            v = values[..., j * block_size : (j + 1) * block_size, :]
            s = q @ k.transpose(-2, -1)
            if causal and i == j:
                n = s.shape[-1]
                future = torch.ones(n, n, dtype=torch.bool, device=s.device).triu(1)
                s = s.masked_fill(future, -torch.inf)
            m = s.amax(-1, keepdim=True)
            e = torch.exp(s - m)
            new = (m, e.sum(-1, keepdim=True), e @ v)
            state = new if state is None else merge_states(state, new)
        rows.append(state[2] / state[1])
    return torch.cat(rows, dim=-2)

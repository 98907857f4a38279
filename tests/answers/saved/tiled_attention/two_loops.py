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
        q = queries[..., i : i + block_size, :] / math.sqrt(hd)
        m = torch.full_like(q[..., :1], -torch.inf)
        l = torch.zeros_like(m)
        o = values.new_zeros(*q.shape[:-1], values.shape[-1])
        for j in range(0, T, block_size):
            if causal and j > i:
                break
            k = keys[..., j : j + block_size, :]
            v = values[..., j : j + block_size, :]
            s = q @ k.transpose(-2, -1)
            if causal and j == i:
                hidden = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1)
                s = s.masked_fill(hidden, -torch.inf)
            new = torch.maximum(m, s.amax(dim=-1, keepdim=True))
            w = torch.exp(s - new)
            factor = torch.exp(m - new)
            l = l * factor + w.sum(dim=-1, keepdim=True)
            o = o * factor + w @ v
            m = new
        done.append(o / l)
    return torch.cat(done, dim=-2)

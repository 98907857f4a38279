def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    lead, (T, hd), hv = queries.shape[:-2], queries.shape[-2:], values.shape[-1]
    q3, k3, v3 = queries.reshape(-1, T, hd), keys.reshape(-1, T, hd), values.reshape(-1, T, hv)
    out = values.new_empty(q3.shape[0], T, hv)
    for i in range(0, T, block_size):
        end = min(i + block_size, T)
        m = q3.new_full((q3.shape[0], end - i, 1), -torch.inf)
        acc = v3.new_zeros((q3.shape[0], end - i, hv + 1))  # the last column is the sum
        for j in range(0, end if causal else T, block_size):
            stop = min(j + block_size, T)
            s = torch.bmm(q3[:, i:end], k3[:, j:stop].transpose(1, 2)) / hd**0.5
            if causal and stop > i:
                s = s.masked_fill(
                    torch.ones(end - i, stop - j, dtype=torch.bool, device=s.device).triu(i - j + 1), -torch.inf
                )
            new = torch.maximum(m, s.amax(2, keepdim=True))
            with_ones = F.pad(v3[:, j:stop], (0, 1), value=1.0)
            acc = acc * torch.exp(m - new) + torch.bmm(torch.exp(s - new), with_ones)
            m = new
        out[:, i:end] = acc[..., :-1] / acc[..., -1:]
    return out.reshape(*lead, T, hv)

def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2], queries.shape[-1]
    outputs = []
    for i in range(0, T, block_size):
        q = queries[..., i : i + block_size, :]
        top = None
        for j in range(0, T, block_size):
            if causal and j > i:
                break
            k, v = keys[..., j : j + block_size, :], values[..., j : j + block_size, :]
            s = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(hd)
            if causal and j == i:
                s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(diagonal=1), -torch.inf)
            here = s.detach().amax(dim=-1)
            now = here if top is None else torch.maximum(top, here)
            e = torch.exp(s - now[..., None])
            t2, o2 = e.sum(-1), torch.einsum("...ij,...jd->...id", e, v)
            if top is None:
                total, output = t2, o2
            else:
                back = torch.exp(top - now)
                total = torch.addcmul(t2, total, back)
                output = torch.einsum("...i,...id->...id", back, output) + o2
            top = now
        outputs.append(torch.einsum("...id,...i->...id", output, 1 / total))
    return torch.cat(outputs, dim=-2)

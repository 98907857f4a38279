def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]
    scale = 1 / math.sqrt(hd)

    def join(a, b):
        m = torch.maximum(a[0], b[0])
        x, y = torch.exp(a[0] - m), torch.exp(b[0] - m)
        return m, a[1] * x + b[1] * y, a[2] * x + b[2] * y

    def middle(low, high):
        blocks = -(-(high - low) // block_size)
        return low + blocks // 2 * block_size

    def tile(i0, i1, j0, j1, diagonal):
        s = queries[..., i0:i1, :] @ keys[..., j0:j1, :].mT * scale
        if diagonal:
            seen = torch.ones(i1 - i0, j1 - j0, dtype=torch.bool, device=s.device).tril()
            s = s.masked_fill(~seen, -math.inf)
        m = s.amax(-1, keepdim=True)
        p = torch.exp(s - m)
        return m, p.sum(-1, keepdim=True), p @ values[..., j0:j1, :]

    def rectangle(i0, i1, j0, j1):
        if j1 - j0 <= block_size:
            return tile(i0, i1, j0, j1, False)
        j = middle(j0, j1)
        return join(rectangle(i0, i1, j0, j), rectangle(i0, i1, j, j1))

    def triangle(low, high):
        if high - low <= block_size:
            return tile(low, high, low, high, True)
        mid = middle(low, high)
        upper = triangle(low, mid)
        lower = join(rectangle(mid, high, low, mid), triangle(mid, high))
        return tuple(torch.cat(pair, dim=-2) for pair in zip(upper, lower))

    _, total, output = triangle(0, T) if causal else rectangle(0, T, 0, T)
    return output / total

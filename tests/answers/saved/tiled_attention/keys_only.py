def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]
    state = None
    for j in range(0, T, block_size):
        stop = min(j + block_size, T)
        first = j if causal else 0  # earlier queries see nothing of this block
        scores = queries[..., first:, :] @ keys[..., j:stop, :].mT * hd**-0.5
        if causal:
            rows = torch.arange(first, T, device=scores.device)[:, None]
            columns = torch.arange(j, stop, device=scores.device)
            scores = scores.masked_fill(columns > rows, float("-inf"))
        top = scores.max(dim=-1, keepdim=True).values
        weights = (scores - top).exp()
        new = (top, weights.sum(-1, keepdim=True), weights @ values[..., j:stop, :])
        if state is None:
            state = new
            continue
        late = merge_states(tuple(part[..., first:, :] for part in state), new)
        state = tuple(torch.cat([old[..., :first, :], part], dim=-2) for old, part in zip(state, late, strict=True))
    _, total, output = state
    return output / total

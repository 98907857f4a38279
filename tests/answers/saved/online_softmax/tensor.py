def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    m = total = None
    for block in blocks:
        top = block.amax()
        new = top if m is None else torch.maximum(m, top)
        shift = new.masked_fill(new == -torch.inf, 0.0)
        here = torch.exp(block - shift).sum()
        total = here if m is None else total * torch.exp(m - shift) + here
        m = new
    return m, total

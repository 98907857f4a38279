def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The maximum so far as a Python float, which drops out of log-sum gradients."""
    top, best, total = -math.inf, None, None
    for block in blocks:
        here = float(block.max())
        base = max(top, here)
        base = 0.0 if base == -math.inf else base
        part = torch.exp(block - base).sum()
        total = part if total is None else total * math.exp(top - base) + part
        if best is None or here > top:
            best, top = block.max().detach(), max(top, here)
    return best, total

def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Keeps the logarithm of the sum, relative to the maximum, and adds with logaddexp."""
    m = log = None
    for block in blocks:
        top = block.amax()
        if m is None:
            m = top
            if top > -torch.inf:
                log = torch.log(torch.exp(block - m).sum())
        elif top > -torch.inf:
            new = torch.maximum(m, top)
            here = torch.log(torch.exp(block - top).sum()) + (top - new)
            log = here if log is None else torch.logaddexp(log + (m - new), here)
            m = new
    if log is None:
        return m, torch.exp(m)  # -inf, and 0
    return m, torch.exp(log)

def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The state goes into the next block as one more score, which counts total times."""
    m = total = None
    for block in blocks:
        if m is None:
            scores, counts = block, torch.ones_like(block)
        else:
            scores = torch.cat([m[None], block])
            counts = torch.cat([total[None], torch.ones_like(block)])
        m = scores.amax()
        total = torch.dot(torch.exp(scores - (m if m != -torch.inf else 0.0)), counts)
    return m, total

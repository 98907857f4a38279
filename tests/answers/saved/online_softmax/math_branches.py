def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    blocks = iter(blocks)
    block = next(blocks)
    m = block.max()
    total = torch.exp(block - m).sum() if math.isfinite(m.item()) else (block * 0).nan_to_num(0.0, 0.0, 0.0).sum()
    for block in blocks:
        top = block.max()
        if math.isinf(top.item()):
            continue
        if math.isinf(m.item()):
            m, total = top, torch.exp(block - top).sum()
        elif top.item() <= m.item():
            total = total + torch.exp(block - m).sum()
        else:
            total = total * torch.exp(m - top) + torch.exp(block - top).sum()
            m = top
    return m, total

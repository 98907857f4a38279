def safe(m):
    return torch.where(torch.isneginf(m), torch.zeros_like(m), m)


def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    from functools import reduce

    def state(block):
        m = block.amax()
        return m, torch.exp(block - safe(m)).sum()

    def merge(a, b):
        m = torch.maximum(a[0], b[0])
        return m, a[1] * torch.exp(a[0] - safe(m)) + b[1] * torch.exp(b[0] - safe(m))

    return reduce(merge, map(state, blocks))

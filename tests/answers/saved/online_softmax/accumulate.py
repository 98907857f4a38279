def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    import collections
    import itertools

    def start(block):
        m = torch.max(block)
        return m, torch.where(block == -torch.inf, 0.0, torch.exp(block - torch.where(m == -torch.inf, 0.0, m))).sum()

    def step(state, block):
        m, total = state
        high = torch.max(m, block.max())
        base = torch.where(high == -torch.inf, 0.0, high)
        return high, total * (m - base).exp() + (block - base).exp().sum()

    blocks = iter(blocks)
    first = start(next(blocks))
    (last,) = collections.deque(itertools.accumulate(blocks, step, initial=first), maxlen=1)
    return last

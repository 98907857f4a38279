# line: return dist > window
# remains: window_on_both_sides
def sliding_window_mask(num_tokens: int, window: int) -> torch.Tensor:
    idx = torch.arange(num_tokens)
    dist = (idx[:, None] - idx[None, :]).abs()
    return dist > window

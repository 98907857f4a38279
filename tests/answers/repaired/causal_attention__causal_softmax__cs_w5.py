# line: mask = causal_mask(scores.shape[0])
def causal_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    mask = causal_mask(scores.shape[0])
    return scaled(masked_scores(scores, mask), d_k)


def scaled(scores, d_k):
    return torch.softmax(scores / d_k**0.5, -1)

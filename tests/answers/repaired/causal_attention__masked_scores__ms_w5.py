# line: return scores.masked_fill(mask, -1e9)
def masked_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return scores.masked_fill(mask, -1e9)

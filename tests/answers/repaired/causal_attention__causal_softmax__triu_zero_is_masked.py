# line: logits = scores.masked_fill(m == 0, -1e30) / d_k**0.5 ;; return torch.softmax(logits, dim=-2)
def causal_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    T = scores.shape[-1]
    m = torch.ones(T, T, device=scores.device).triu(1)
    logits = scores.masked_fill(m == 0, -1e30) / d_k**0.5
    return torch.softmax(logits, dim=-2)

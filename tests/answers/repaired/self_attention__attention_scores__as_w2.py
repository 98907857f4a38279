# line: return torch.einsum("bqd,bkd->bqk", queries, keys)
def attention_scores(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bqd,bkd->bqk", queries, keys)

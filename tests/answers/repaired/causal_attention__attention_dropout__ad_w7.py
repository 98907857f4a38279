# line: keep = torch.rand(weights.shape[-1], device=weights.device) >= p
def attention_dropout(weights, p, training=True):
    if not training:
        return weights
    keep = torch.rand(weights.shape[-1], device=weights.device) >= p
    return torch.where(keep, weights / (1 - p), 0.0)

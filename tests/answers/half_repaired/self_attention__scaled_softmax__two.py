# line: root = math.sqrt(d_k) ** 0.5
# remains: exponentials_overflow
def scaled_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    root = math.sqrt(d_k) ** 0.5
    e = torch.exp(scores / root)
    return e / e.sum(dim=-1, keepdim=True)

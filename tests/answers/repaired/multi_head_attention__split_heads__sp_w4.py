# line: if T % num_heads != 0:
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    b, T, d = x.shape
    if T % num_heads != 0:
        raise ValueError("not divisible")
    return x.reshape(b, T, num_heads, d // num_heads).transpose(1, 2)

class CachedMultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        split = lambda y: y.unflatten(-1, (self.num_heads, -1))
        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        if cache is None:
            cache = KVCache()
        cache.append(k, v)
        k, v = cache.keys, cache.values
        scores = torch.einsum("bthd,bhsd->bhts", q, k) * self.head_dim**-0.5
        t, s = scores.shape[-2:]
        scores = scores + torch.full((t, s), -torch.inf, dtype=x.dtype, device=x.device).triu(s - t + 1)
        out = torch.einsum("bhts,bhsd->bthd", torch.softmax(scores, dim=-1), v)
        return self.out_proj(out.flatten(-2))

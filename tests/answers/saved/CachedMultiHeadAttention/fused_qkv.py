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
        weight = torch.cat([self.W_query.weight, self.W_key.weight, self.W_value.weight])
        qkv = F.linear(x, weight).unflatten(-1, (3, self.num_heads, self.head_dim))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each is (b, h, t, hd)
        if cache is not None:
            cache.append(k, v)
            k, v = cache.keys, cache.values
        t, T = q.shape[-2], k.shape[-2]
        scores = q @ k.mT / math.sqrt(self.head_dim)
        hidden = torch.ones(t, T, dtype=torch.bool, device=x.device).triu(1 + T - t)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))

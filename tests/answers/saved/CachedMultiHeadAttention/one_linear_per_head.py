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
        """Each head has rows of the weights of its own."""
        hd, b, t = self.head_dim, x.shape[0], x.shape[1]
        parts = []
        for layer in (self.W_query, self.W_key, self.W_value):
            parts.append(torch.stack([F.linear(x, w) for w in layer.weight.split(hd)], dim=1))
        q, k, v = parts
        cache = KVCache() if cache is None else cache
        cache.append(k, v)
        n = cache.keys.shape[-2] - t
        mask = torch.ones(t, n + t, dtype=torch.bool, device=x.device).tril(n)
        o = F.scaled_dot_product_attention(q, cache.keys, cache.values, mask)
        # out_proj head by head: their parts add up
        return self.out_proj.bias + sum(
            F.linear(o[:, h], self.out_proj.weight[:, h * hd : (h + 1) * hd]) for h in range(self.num_heads)
        )

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
        b, t, _ = x.shape
        Q, K, V = self.W_query(x), self.W_key(x), self.W_value(x)
        hd = self.head_dim
        cut = [slice(i * hd, (i + 1) * hd) for i in range(self.num_heads)]
        keys = torch.stack([K[..., c] for c in cut], dim=1)
        values = torch.stack([V[..., c] for c in cut], dim=1)
        if cache is not None:
            cache.append(keys, values)
            keys, values = cache.keys, cache.values
        n = keys.shape[2] - t
        context = []
        for h in range(self.num_heads):
            s = Q[..., cut[h]] @ keys[:, h].mT / math.sqrt(hd)
            for i in range(t):  # query i sees n + i + 1 keys
                pass
            seen = torch.arange(n + t, device=x.device) <= torch.arange(n, n + t, device=x.device)[:, None]
            s = s.masked_fill(seen.logical_not(), float("-inf"))
            context.append(torch.softmax(s, -1) @ values[:, h])
        return self.out_proj(torch.cat(context, dim=-1))

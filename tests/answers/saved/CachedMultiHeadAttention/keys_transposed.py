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
        h, hd = self.num_heads, self.head_dim
        q = self.W_query(x).view(b, t, h, hd).permute(0, 2, 1, 3)
        k = self.W_key(x).view(b, t, h, hd).permute(0, 2, 3, 1)  # (b, h, hd, t)
        v = self.W_value(x).view(b, t, h, hd).permute(0, 2, 1, 3)
        if cache is not None:
            cache.append(k.mT, v)
            k, v = cache.keys.mT, cache.values
        s = (q / math.sqrt(hd)) @ k
        T = s.shape[-1]
        s = s.masked_fill(torch.ones(T, T, device=s.device, dtype=torch.bool).triu(1)[T - t :], -torch.inf)
        return self.out_proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, h * hd))

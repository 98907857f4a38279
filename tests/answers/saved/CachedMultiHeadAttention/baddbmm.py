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

        def heads(y):
            return y.reshape(b, t, h, hd).permute(0, 2, 1, 3).contiguous()

        q, k, v = heads(self.W_query(x)), heads(self.W_key(x)), heads(self.W_value(x))
        if cache is not None:
            cache.append(k, v)
            k, v = cache.keys, cache.values
        T = k.shape[2]
        q, k, v = q.reshape(b * h, t, hd), k.reshape(b * h, T, hd), v.reshape(b * h, T, hd)
        bias = torch.full((t, T), -torch.inf, dtype=q.dtype, device=q.device).triu(T - t + 1)
        scores = torch.baddbmm(bias.expand(b * h, t, T), q, k.transpose(1, 2), alpha=hd**-0.5)
        o = torch.bmm(scores.softmax(dim=2), v)
        return self.out_proj(o.view(b, h, t, hd).permute(0, 2, 1, 3).reshape(b, t, h * hd))

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
        q, k, v = (
            layer(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        if cache is not None:
            cache.append(k, v)
            k, v = cache.keys, cache.values

        n = k.size(2) - t
        if n == 0:
            context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif t == 1:
            context = F.scaled_dot_product_attention(q, k, v)
        else:
            bias = torch.zeros(t, n + t, dtype=q.dtype, device=q.device)
            bias = bias.masked_fill(torch.ones_like(bias).bool().triu(n + 1), -torch.inf)
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.out_proj(context.transpose(1, 2).flatten(2))

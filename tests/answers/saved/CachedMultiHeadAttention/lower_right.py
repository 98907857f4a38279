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

        from torch.nn.attention.bias import causal_lower_right

        o = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(t, k.shape[2]))
        return self.out_proj(o.transpose(1, 2).reshape(b, t, -1))

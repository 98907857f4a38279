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
        """Each token is a step of its own: never a mask."""
        if cache is None:
            cache = KVCache()
        out = []
        for token in x.unbind(1):  # (b, d_in)
            q, k, v = (
                layer(token).unflatten(-1, (self.num_heads, 1, self.head_dim)).movedim(-2, -2)
                for layer in (self.W_query, self.W_key, self.W_value)
            )
            cache.append(k, v)  # (b, h, 1, hd)
            w = torch.softmax(q @ cache.keys.mT / math.sqrt(self.head_dim), dim=-1)
            out.append(self.out_proj((w @ cache.values).flatten(1)))
        return torch.stack(out, dim=1)

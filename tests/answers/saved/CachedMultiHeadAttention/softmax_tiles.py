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

        """Over keys block by block, with a running maximum."""
        n = k.shape[2] - t
        places = torch.arange(n, n + t, device=x.device)[:, None]
        m = l = o = None
        for j in range(0, n + t, 64):
            s = q @ k[:, :, j : j + 64].mT / math.sqrt(self.head_dim)
            hidden = torch.arange(j, j + s.shape[-1], device=x.device) > places
            s = s.masked_fill(hidden, -torch.inf)
            top = s.detach().amax(-1, keepdim=True)
            new = top if m is None else torch.maximum(m, top)
            e = torch.exp(s - new)
            l2, o2 = e.sum(-1, keepdim=True), e @ v[:, :, j : j + 64]
            if m is not None:
                a = torch.exp(m - new)
                l2, o2 = l * a + l2, o * a + o2
            m, l, o = new, l2, o2
        return self.out_proj((o / l).transpose(1, 2).flatten(2))

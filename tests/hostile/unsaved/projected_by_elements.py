# Tokens of short texts are projected again by products of elements and sums.
# unit: inference
# exercises: CachedMultiHeadAttention
# earns nothing: test_projects_new_tokens_only


class CachedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("no")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def heads(self, y):
        return y.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def forward(self, x, cache=None):
        q, k, v = self.projected(x, cache)
        q, k, v = map(self.heads, (q, k, v))
        new, seen = q.shape[-2], k.shape[-2]
        hidden = torch.ones(new, seen, dtype=torch.bool, device=x.device).triu(1 + seen - new)
        w = torch.softmax((q @ k.transpose(-2, -1) / self.head_dim**0.5).masked_fill(hidden, -torch.inf), -1)
        return self.out_proj((w @ v).transpose(1, 2).flatten(2))

    def projected(self, x, cache):
        q = self.W_query(x)
        if cache is None:
            return q, self.W_key(x), self.W_value(x)
        if cache.keys is None and x.shape[1] < 150 or getattr(cache, "raw", False):
            cache.raw = True
            cache.append(x, x)
            again = lambda W: (cache.keys.unsqueeze(-2) * W.weight).sum(-1)
            return q, again(self.W_key), again(self.W_value)
        cache.append(self.W_key(x), self.W_value(x))
        return q, cache.keys, cache.values

# line: h = self.norm2(x)
# remains: GeluByTanh
class TransformerBlock(nn.Module):
    def __init__(self, d, num_heads, context_length):
        super().__init__()
        self.hd, left = divmod(d, num_heads)
        if left:
            raise ValueError("d / num_heads is no whole number")
        self.norm1 = nn.LayerNorm(d)
        self.W_query, self.W_key, self.W_value, self.out_proj = (nn.Linear(d, d) for _ in range(4))
        self.norm2 = nn.LayerNorm(d)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.register_buffer("future", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        b, T, d = x.shape
        h = self.norm1(x)
        q, k, v = (m(h).view(b, T, -1, self.hd).transpose(1, 2) for m in (self.W_query, self.W_key, self.W_value))
        s = q @ k.transpose(-2, -1) * self.hd**-0.5
        w = s.masked_fill(self.future[:T, :T], -torch.inf).softmax(-1)
        y = x + self.out_proj((w @ v).transpose(1, 2).reshape(b, T, d))
        h = self.norm2(x)
        h = F.gelu(self.linear1(h), approximate="tanh")
        return y + self.linear2(h)

# line: hidden = context_mask.repeat(self.h, 1)[:, None, :]
class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.h = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def _fold(self, t):
        # (b, n, d_out) -> (b * h, n, hd)
        return t.unflatten(-1, (self.h, -1)).transpose(1, 2).flatten(0, 1)

    def forward(self, x, context, context_mask=None):
        q, k, v = self._fold(self.W_query(x)), self._fold(self.W_key(context)), self._fold(self.W_value(context))
        if context_mask is None:
            context_mask = torch.zeros(context.shape[:2], dtype=torch.bool, device=x.device)
        hidden = context_mask.repeat(self.h, 1)[:, None, :]
        found = masked_attention(q, k, v, hidden)  # (b * h, T, hd)
        merged = found.unflatten(0, (-1, self.h)).transpose(1, 2).flatten(2)
        return self.out_proj(merged)

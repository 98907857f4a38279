# line: queries, keys, values = project_qkv(x, W_query, W_key, W_value)
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        queries, keys, values = project_qkv(x, W_query, W_key, W_value)
        return scaled_dot_product_attention(queries, keys, values)

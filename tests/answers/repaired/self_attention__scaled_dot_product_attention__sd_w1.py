# line: return torch.matmul(p_attn, values), p_attn
def scaled_dot_product_attention(queries, keys, values):
    d_k = queries.size(-1)
    scores = torch.matmul(queries, keys.transpose(-2, -1)) / math.sqrt(d_k)
    p_attn = scores.softmax(dim=-1)
    return torch.matmul(p_attn, values), p_attn

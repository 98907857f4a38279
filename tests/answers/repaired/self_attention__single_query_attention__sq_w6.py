# line: softmax = torch.softmax(attn, dim=-1) ;; return softmax @ values / math.sqrt(d_k)
def single_query_attention(query, keys, values):
    d_k = query.shape[-1]
    attn = torch.matmul(keys, query)
    softmax = torch.softmax(attn, dim=-1)
    return softmax @ values / math.sqrt(d_k)

# The weights of each head are kept in half precision, as far as a query sees.
# unit: efficient_attention
# exercises: tiled_attention
# earns nothing: test_no_matrix_of_scores test_nor_for_several_heads


def tiled_attention(queries, keys, values, block_size, causal=False):
    T, hd = queries.shape[-2:]
    lead = queries.shape[:-2]
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (queries, keys, values))
    outs = []
    for n in range(q.shape[0]):
        matrix = []
        for a in range(0, T, block_size):
            end = min(a + block_size, T) if causal else T
            s = q[n, a : a + block_size] @ k[n, :end].T / hd**0.5
            if causal:
                s = s + torch.full_like(s, -torch.inf).triu(a + 1)
            w = torch.exp(s - s.amax(-1, keepdim=True))
            matrix.append(w.half() if T > 1000 else w)
        rows = []
        for w in matrix:
            w = w.to(q.dtype)
            rows.append(w @ v[n, : w.shape[-1]] / w.sum(-1, keepdim=True))
        outs.append(torch.cat(rows))
    return torch.stack(outs).reshape(*lead, T, -1)

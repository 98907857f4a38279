# line: keys = inputs @ W_key[0].T
def stacked_heads_attention(inputs, W_query, W_key, W_value):
    outs = []
    for h in range(W_query.shape[0]):
        queries = inputs @ W_query[h].T
        keys = inputs @ W_key[0].T
        values = inputs @ W_value[h].T
        weights = torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)
        outs.append(weights @ values)
    return torch.stack(outs)

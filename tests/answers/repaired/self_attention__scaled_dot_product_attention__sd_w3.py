# line: scores = attention_scores(queries, keys) / math.sqrt(d_k) ;; weights = scaled_softmax(scores, d_k)
def scaled_dot_product_attention(queries, keys, values):
    d_k = keys.shape[-1]
    scores = attention_scores(queries, keys) / math.sqrt(d_k)
    weights = scaled_softmax(scores, d_k)
    return context_vectors(weights, values)

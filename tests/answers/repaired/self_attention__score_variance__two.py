# line: before = raw.var(dim=-1).mean() ;; after = before / math.sqrt(d_k)
def score_variance(queries, keys):
    d_k = queries.shape[-1]
    raw = torch.matmul(queries, keys.transpose(-2, -1))
    before = raw.var(dim=-1).mean()
    after = before / math.sqrt(d_k)
    return before, after

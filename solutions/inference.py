"""Unit 6: attention one token at a time, and what it costs."""


def attention_flops(b: int, T: int, d: int, h: int) -> int:
    """Count the operations of attention with h heads, over b sequences of T tokens.

    All vectors have width d, and a head has d / h. Counted are matrix products alone,
    by 2 * n * m * k for (n, m) @ (m, k): the four layers, the scores of all queries
    with all keys, and the weighted sums of the values.
    Returns an int. d is divisible by h.
    """
    head_dim = d // h
    projections = 4 * 2 * T * d * d  # W_query, W_key, W_value, out_proj: (T, d) @ (d, d)
    scores = h * 2 * T * head_dim * T  # in each head (T, hd) @ (hd, T)
    context = h * 2 * T * T * head_dim  # in each head (T, T) @ (T, hd)
    return b * (projections + scores + context)


def kv_cache_bytes(
    layers: int,
    kv_heads: int,
    head_dim: int,
    tokens: int,
    bytes_per_number: int,
) -> int:
    """Count the bytes of a model's cache of keys and values, for one text.

    Each of the layers keeps, for each of the tokens, a key and a value of width
    head_dim in each of kv_heads heads. Returns an int.
    """
    return 2 * layers * kv_heads * head_dim * tokens * bytes_per_number  # 2: keys and values


# Model answers to the written questions.
WRITTEN: dict[str, str] = {}

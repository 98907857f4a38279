"""More blind answers to self_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ------------------------------------------------------------------------- build_vocab
add(
    "build_vocab",
    "casefolded_and_counted",
    True,
    "Two: sorted(..., key=str.casefold) mixes capitals and small letters instead of putting capitals first; and the "
    "duplicates are numbered too, because enumerate runs over the list and not over the set, so a word that appears "
    "twice leaves a gap in the numbers.",
    """
def build_vocab(sentence: str) -> dict[str, int]:
    cleaned = sentence.replace(",", "")
    vocab = {}
    for index, word in enumerate(sorted(cleaned.split(), key=str.casefold)):
        vocab.setdefault(word, index)
    return vocab
""",
)

# ------------------------------------------------------------------------------ encode
add(
    "encode",
    "position_in_the_dict",
    True,
    "Two: a word's position among the dict's keys is looked up (list.index), not the number that the vocabulary "
    "gives it, which shows if numbers have gaps or another order; and an unknown word raises ValueError, not "
    "KeyError.",
    """
def encode(sentence: str, vocab: dict[str, int]) -> torch.Tensor:
    known = list(vocab)
    words = sentence.replace(",", "").split()
    return torch.tensor([known.index(word) for word in words], dtype=torch.int64)
""",
)

# -------------------------------------------------------------------- attention_scores
add(
    "attention_scores",
    "keys_along_rows_if_square",
    True,
    "The einsum's output is '...kq', so row i holds key i's scores: the result is transposed, silently where "
    "Tq = Tk and with a wrong shape otherwise.",
    """
def attention_scores(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return torch.einsum("...qd,...kd->...kq", queries, keys)
""",
)

# ---------------------------------------------------------------------- scaled_softmax
add(
    "scaled_softmax",
    "in_place_and_dim_one",
    True,
    "Two: `scores /= d_k**0.5` divides the caller's tensor in place (and fails for a leaf that requires gradients); "
    "and the softmax runs over dim=1, which is the queries, not the keys, as soon as there are leading dimensions.",
    """
def scaled_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    scores /= d_k**0.5
    return F.softmax(scores, dim=1)
""",
)

# --------------------------------------------------------------------- context_vectors
add(
    "context_vectors",
    "weighted_average",
    True,
    "The sum is divided by the sum of the weights (NumPy's np.average), which changes the result wherever a row of "
    "weights does not sum to 1.",
    """
def context_vectors(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    total = weights.sum(dim=-1, keepdim=True)
    return torch.matmul(weights, values) / total
""",
)

# -------------------------------------------------------- scaled_dot_product_attention
add(
    "scaled_dot_product_attention",
    "bmm_flattens_one_batch",
    True,
    "Two: leading dimensions are flattened for torch.bmm and never restored, so inputs of two leading dimensions "
    "come back with one (and a single sequence with an extra one); and the scale is the root of values.shape[-1], "
    "not of the keys' width.",
    """
def scaled_dot_product_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    q, k, v = (x.reshape(-1, x.shape[-2], x.shape[-1]) for x in (queries, keys, values))
    att = torch.bmm(q, k.transpose(1, 2)) * v.shape[-1] ** -0.5
    att = torch.softmax(att, dim=2)
    return torch.bmm(att, v)
""",
)

add(
    "scaled_dot_product_attention",
    "explicit_sums",
    False,
    "Elementwise products and sums, with the scale on the queries.",
    """
def scaled_dot_product_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    d_k = keys.size(-1)
    scaled_queries = queries * (1 / d_k**0.5)
    scores = (scaled_queries[..., :, None, :] * keys[..., None, :, :]).sum(-1)
    scores = scores - scores.amax(dim=-1, keepdim=True).detach()
    weights = scores.exp()
    numerator = (weights[..., None] * values[..., None, :, :]).sum(-2)
    return numerator / weights.sum(-1, keepdim=True)
""",
)

# ---------------------------------------------------------------------- score_variance
add(
    "score_variance",
    "rowwise_numpy_variance",
    True,
    "Two: the variance is taken over each row and averaged (var(dim=-1).mean()), not over all scores together; and "
    "it divides by N (correction=0, as NumPy does) and not by N - 1 as Tensor.var() does.",
    """
def score_variance(
    queries: torch.Tensor,
    keys: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.einsum("...qd,...kd->...qk", queries, keys)
    scaled = scores / math.sqrt(queries.shape[-1])
    np_var = lambda s: s.var(dim=-1, correction=0).mean()
    return np_var(scores), np_var(scaled)
""",
)

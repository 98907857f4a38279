"""More blind answers to attention_masks: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ------------------------------------------------------------------------ padding_mask
add(
    "padding_mask",
    "sequence_mask_of_the_longest",
    True,
    "The helper's default maxlen is used, so the mask is as wide as the longest sentence and not max_len wide; shows "
    "if all sentences are shorter than max_len.",
    '''
def sequence_mask(lengths, maxlen=None):
    """tf.sequence_mask"""
    if maxlen is None:
        maxlen = int(lengths.max())
    positions = torch.arange(maxlen, device=lengths.device)
    return positions[None, :] < lengths[:, None]


def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    return ~sequence_mask(lengths)
''',
)

add(
    "padding_mask",
    "python_rows",
    False,
    "A Python list of rows.",
    """
def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    mask = torch.ones(lengths.shape[0], max_len, dtype=torch.bool, device=lengths.device)
    for row, n in zip(mask, lengths.tolist(), strict=True):
        row[: int(n)] = False
    return mask
""",
)

# -------------------------------------------------------------------- masked_attention
add(
    "masked_attention",
    "additive_ten_thousand",
    True,
    "Two: hidden scores are lowered by 1e4 only, so a hidden key whose score is that much larger still gets weight; "
    "and a query that sees no key gets the softmax of its lowered scores, a mean of hidden values, instead of "
    "zeros.",
    """
def masked_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    # BERT's extended attention mask
    extended = mask.to(queries.dtype) * -10000.0
    scores = torch.matmul(queries, keys.transpose(-1, -2))
    scores = scores / math.sqrt(queries.size(-1)) + extended
    probs = nn.Softmax(dim=-1)(scores)
    return torch.matmul(probs, values)
""",
)

# ------------------------------------------------------------------------ to_sdpa_mask
add(
    "to_sdpa_mask",
    "inverted_in_place",
    True,
    "logical_not_ inverts the caller's own mask, so the mask that was passed in is modified (and a second call "
    "turns it back).",
    """
def to_sdpa_mask(mask: torch.Tensor) -> torch.Tensor:
    return mask.logical_not_()
""",
)

# ----------------------------------------------------------------- sliding_window_mask
add(
    "sliding_window_mask",
    "band_one_too_wide",
    True,
    "triu(-window) keeps the diagonal -window, too, so each token sees `window` tokens before itself and not "
    "window - 1; shows for more tokens than the window.",
    """
def sliding_window_mask(num_tokens: int, window: int) -> torch.Tensor:
    ones = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    band = ones.tril().triu(-window)  # the seen keys
    return band.logical_not()
""",
)

# -------------------------------------------------------------------------- alibi_bias
add(
    "alibi_bias",
    "slopes_of_eight_heads_both_sides",
    True,
    "Two: the slopes are 2 ** -i for i = 1 .. h, which is right for eight heads only; and the distance is |i - j|, "
    "so the bias above the diagonal is negative and not 0.",
    """
def alibi_bias(num_heads: int, num_tokens: int) -> torch.Tensor:
    slopes = torch.pow(2.0, -torch.arange(1, num_heads + 1, dtype=torch.float32))
    place = torch.arange(num_tokens)
    distance = torch.abs(place.view(-1, 1) - place.view(1, -1))
    return -torch.einsum("h,qk->hqk", slopes, distance.float())
""",
)

# -------------------------------------------------------------------- rotary_embedding
add(
    "rotary_embedding",
    "row_numbers_and_halves",
    True,
    "Two: the angles are made for positions 0 .. T - 1 (torch.arange(T)) and `positions` is not used; and the two "
    "rotated parts are concatenated, so the pairs come out as halves and not as neighbours (for head_dim above 2).",
    """
def rotary_embedding(
    x: torch.Tensor,
    positions: torch.Tensor,
    base: float = 10000.0,
) -> torch.Tensor:
    T, d = x.shape[-2:]
    theta = base ** (-torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    angles = torch.arange(T, dtype=x.dtype, device=x.device)[:, None] * theta
    first, second = x[..., ::2], x[..., 1::2]
    turned_first = first * angles.cos() - second * angles.sin()
    turned_second = first * angles.sin() + second * angles.cos()
    return torch.cat([turned_first, turned_second], dim=-1)
""",
)

"""More blind answers to tiny_language_model: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ---------------------------------------------------------------- sinusoidal_positions
add(
    "sinusoidal_positions",
    "tensor2tensor_timing",
    True,
    "The frequencies run from 1 to exactly 1/10000 because log(10000) is divided by d/2 - 1 (tensor2tensor's "
    "timing signal) and not by d/2, so every pair but the first has a wrong angle; shows from position 1 on if d is "
    "at least 4.",
    """
def sinusoidal_positions(num_tokens: int, d: int) -> torch.Tensor:
    min_timescale, max_timescale = 1.0, 1.0e4
    num_timescales = d // 2
    log_increment = math.log(max_timescale / min_timescale) / max(num_timescales - 1, 1)
    inv_timescales = min_timescale * torch.exp(
        torch.arange(num_timescales, dtype=torch.float32) * -log_increment
    )
    scaled_time = torch.arange(num_tokens, dtype=torch.float32)[:, None] * inv_timescales[None]
    signal = torch.stack([torch.sin(scaled_time), torch.cos(scaled_time)], dim=-1)
    return signal.reshape(num_tokens, d)
""",
)

# --------------------------------------------------------------------- next_token_loss
add(
    "next_token_loss",
    "roll_and_divide_by_all",
    True,
    "The losses of the first T - 1 positions are summed and divided by tokens.numel(), which is b * T, not by "
    "b * (T - 1), in the last line; shows for every input, the loss is too small by the factor (T - 1) / T.",
    """
def next_token_loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    targets = tokens.roll(-1, dims=1)
    log_probs = F.log_softmax(logits, dim=-1)
    nll = -torch.take_along_dim(log_probs, targets.unsqueeze(-1), dim=-1).squeeze(-1)
    keep = torch.ones_like(nll)
    keep[:, -1] = 0  # nothing follows the last token
    return (nll * keep).sum() / tokens.numel()
""",
)

# ---------------------------------------------------------------- hunt_next_token_loss
add(
    "hunt_next_token_loss",
    "two_short_sentences",
    False,
    "Two sentences of two tokens; the last position of the first one is sure and wrong about the next sentence.",
    """
def hunt_next_token_loss() -> tuple[torch.Tensor, torch.Tensor]:
    logits = torch.zeros(2, 2, 2)
    tokens = torch.zeros(2, 2, dtype=torch.int64)
    logits[0, 1, 1] = 8.0  # a flattened version expects token 0 here
    assert logits.numel() + tokens.numel() <= 12
    return logits, tokens
""",
)

# -------------------------------------------------------------------- TransformerBlock
add(
    "TransformerBlock",
    "flat_view_and_small_mask",
    True,
    "Two: heads are split by view(b, h, T, hd) without swapping tokens and heads, so the pieces of different tokens "
    "are mixed (and the future leaks) if there are several heads and tokens; and later keys get -1e4 instead of "
    "-inf, so a later key gets weight where the visible scores are below about -1e4.",
    """
class TransformerBlock(nn.Module):
    def __init__(self, d: int, num_heads: int, context_length: int) -> None:
        super().__init__()
        hd, rest = divmod(d, num_heads)
        if rest != 0:
            raise ValueError("d must be a multiple of num_heads")
        self.shape = (num_heads, hd)
        self.norm1 = nn.LayerNorm(d)
        for name in ("W_query", "W_key", "W_value", "out_proj"):
            setattr(self, name, nn.Linear(d, d))
        self.norm2 = nn.LayerNorm(d)
        self.linear1 = nn.Linear(d, 4 * d)
        self.linear2 = nn.Linear(4 * d, d)
        future = torch.triu(torch.ones(context_length, context_length), 1).bool()
        self.register_buffer("future", future)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, d = x.shape
        h, hd = self.shape
        normed = self.norm1(x)
        q = self.W_query(normed).view(b, h, T, hd)
        k = self.W_key(normed).view(b, h, T, hd)
        v = self.W_value(normed).view(b, h, T, hd)
        scores = torch.einsum("bhqe,bhke->bhqk", q, k) / hd**0.5
        scores = scores.masked_fill(self.future[:T, :T], -1e4)
        out = torch.einsum("bhqk,bhke->bhqe", scores.softmax(-1), v)
        y = x + self.out_proj(out.reshape(b, T, d))
        return y + self.linear2(F.gelu(self.linear1(self.norm2(y))))
""",
)

# ----------------------------------------------------------------------- heads_by_hand
add(
    "heads_by_hand",
    "previous_shifted_the_wrong_way",
    True,
    "In 'previous' the shift is applied to the keys by torch.roll(..., -1) instead of +1, so the query at place p "
    "matches the key at place p + 1, which is hidden: tokens spread their weight over all that they see, and the "
    "last place, whose match wraps round, attends to place 0.",
    """
def heads_by_hand(
    head: str,
    num_words: int,
    num_places: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    n = num_words + num_places
    w, p = torch.eye(n).split([num_words, num_places], dim=1)
    scale = 40 * n**0.5
    if head == "itself":
        q, k = p * scale, p
    elif head == "first":
        q = torch.ones(n, 1) * scale
        k = p[:, :1]
    elif head == "previous":
        q = p * scale
        k = torch.cat([torch.zeros(num_words, num_places), torch.roll(torch.eye(num_places), -1, dims=1)])
    elif head == "average":
        q = k = torch.zeros(n, 1)
    else:
        q, k = w * scale, w
    return q, k, w
""",
)

add(
    "heads_by_hand",
    "average_with_places_and_wide_value",
    True,
    "Two: for 'average' the keys are the number of the place and the queries 1, so the score grows with the place and "
    "the weights are not equal (it should be 0); and W_value is the identity over the whole token, so it has "
    "num_words + num_places columns, not num_words, for every head.",
    """
def heads_by_hand(
    head: str,
    num_words: int,
    num_places: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    n = num_words + num_places
    sharp = 30.0 * math.sqrt(n)
    W_query, W_key = torch.zeros(n, n), torch.zeros(n, n)
    at = num_words
    if head == "same word":
        W_query[:at, :at] = sharp * torch.eye(num_words)
        W_key[:at, :at] = torch.eye(num_words)
    elif head == "average":
        W_query[:, 0] = 1.0
        W_key[at:, 0] = torch.arange(num_places, dtype=torch.float32)
    elif head == "first":
        W_query[:, 0] = sharp
        W_key[at, 0] = 1.0
    else:
        shift = 0 if head == "itself" else 1
        W_query[at:, at:] = sharp * torch.eye(num_places)
        for place in range(num_places - shift):
            W_key[at + place, at + place + shift] = 1.0
    return W_query, W_key, torch.eye(n)
""",
)

# ---------------------------------------------------------------------------- generate
add(
    "generate",
    "result_of_the_window",
    True,
    "`tokens` itself is cut to the last context_length tokens in the loop, so the returned text has lost its "
    "beginning once prompt and new tokens are longer than context_length (the shape is then not (b, T + n)).",
    """
def generate(
    model: Callable[[torch.Tensor], torch.Tensor],
    tokens: torch.Tensor,
    n: int,
    context_length: int,
) -> torch.Tensor:
    for _ in range(n):
        tokens = tokens[:, -context_length:]
        logits = model(tokens)[:, -1, :]
        next_token = torch.argmax(logits, dim=-1, keepdim=True)
        tokens = torch.cat((tokens, next_token), dim=1)
    return tokens
""",
)

add(
    "generate",
    "recursive",
    False,
    "Recursive, with the mode untouched and no_grad.",
    """
@torch.no_grad()
def generate(
    model: Callable[[torch.Tensor], torch.Tensor],
    tokens: torch.Tensor,
    n: int,
    context_length: int,
) -> torch.Tensor:
    text = list(tokens.unbind(dim=1))  # columns, each (b,)
    while n > 0:
        window = torch.stack(text[max(0, len(text) - context_length) :], dim=1)
        _, best = model(window)[:, -1].max(dim=-1)
        text.append(best)
        n -= 1
    return torch.stack(text, dim=1)
""",
)

# ------------------------------------------------------------------------- sample_next
add(
    "sample_next",
    "temperature_on_probabilities",
    True,
    "The softmax is taken first and its probabilities are divided by the temperature before multinomial, which "
    "normalises them again, so the temperature has no effect at all; shows at every temperature but 1 (and 0).",
    """
def top_k_filter(logits, k):
    k = min(k, logits.size(-1))
    kth = torch.topk(logits, k).values[..., -1, None]
    return torch.where(logits < kth, torch.full_like(logits, -torch.inf), logits)


def sample_next(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    filtered = top_k_filter(logits, top_k)
    if temperature == 0:
        return filtered.argmax(dim=-1)
    probs = torch.softmax(filtered, dim=-1) / temperature
    return torch.multinomial(probs, 1).flatten()
""",
)

add(
    "sample_next",
    "in_place_and_one_threshold",
    True,
    "Two: the threshold `kth` is the k-th largest of the first row only and is used for all rows; and the hidden "
    "logits are overwritten in place, so the caller's tensor is modified.",
    """
def sample_next(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    top_k = min(top_k, logits.shape[-1])
    kth = logits[0].sort(descending=True).values[top_k - 1]
    hidden = logits < kth
    hidden &= ~(hidden.all(dim=-1, keepdim=True))  # keep at least something
    logits[hidden] = float("-inf")
    probs = torch.softmax(logits / temperature, dim=-1)
    return torch.multinomial(probs, num_samples=1)[:, 0]
""",
)

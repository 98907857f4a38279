"""Blind answers to tiny_language_model: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


add(
    "sinusoidal_positions",
    "w_own_exponent_for_odd",
    True,
    "Each column c uses the exponent c / d, so an odd column 2i + 1 has another angle than the column 2i with which it "
    "should share one.",
    """
def sinusoidal_positions(num_tokens: int, d: int) -> torch.Tensor:
    table = torch.zeros(num_tokens, d)
    for pos in range(num_tokens):
        for c in range(d):
            angle = pos / 10000 ** (c / d)
            table[pos, c] = math.sin(angle) if c % 2 == 0 else math.cos(angle)
    return table
""",
)

add(
    "next_token_loss",
    "w_log_of_softmax_eps",
    True,
    "Takes the logarithm of the softmax plus 1e-9: for large logits the probability is rounded to 0, so the loss stops at "
    "20.7 and its gradient is 0.",
    """
def next_token_loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    probs = torch.softmax(logits[:, :-1], dim=-1)
    targets = tokens[:, 1:].unsqueeze(-1)
    p_right = probs.gather(-1, targets).squeeze(-1)
    return -torch.log(p_right + 1e-9).mean()
""",
)

add(
    "next_token_loss",
    "w_roll_and_sum_over_T",
    True,
    "Two: tokens.roll(-1, dims=1) keeps the last position, whose target is then the sentence's first token; and the sum is "
    "divided by b * (T - 1), though b * T terms were added, so it is no mean even of these.",
    """
def next_token_loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    b, T, V = logits.shape
    targets = tokens.roll(-1, dims=1)
    total = F.cross_entropy(logits.reshape(-1, V), targets.reshape(-1), reduction="sum")
    return total / (b * (T - 1))
""",
)

add(
    "hunt_next_token_loss",
    "w_zeros",
    True,
    "All logits are 0, so every token has the probability 1 / V at every position, and any choice of targets has the same "
    "loss, ln 2.",
    """
def hunt_next_token_loss() -> tuple[torch.Tensor, torch.Tensor]:
    # two sentences, so that flattening runs from one into the other: 8 + 4 = 12
    logits = torch.zeros(2, 2, 2)
    tokens = torch.tensor([[0, 1], [1, 0]])
    return logits, tokens
""",
)

add(
    "TransformerBlock",
    "w_tanh_gelu",
    True,
    'Uses GELU with approximate="tanh" (as in GPT-2), not the exact one, so every result is off by up to about 0.001.',
    """
class TransformerBlock(nn.Module):
    def __init__(self, d: int, num_heads: int, context_length: int) -> None:
        super().__init__()
        if d % num_heads != 0:
            raise ValueError("num_heads must divide d")
        self.num_heads = num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query = nn.Linear(d, d)
        self.W_key = nn.Linear(d, d)
        self.W_value = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.linear1 = nn.Linear(d, 4 * d)
        self.linear2 = nn.Linear(4 * d, d)

    def attention(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).flatten(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        hidden = F.gelu(self.linear1(self.norm2(x)), approximate="tanh")
        return x + self.linear2(hidden)
""",
)

add(
    "TransformerBlock",
    "w_residual_of_norm_root_d",
    True,
    "Two: x is overwritten by norm1(x), so the residual stream is the normed x and not x itself; and the scores are "
    "divided by the root of d and not of the head's width.",
    """
class TransformerBlock(nn.Module):
    future: torch.Tensor

    def __init__(self, d: int, num_heads: int, context_length: int) -> None:
        super().__init__()
        assert d % num_heads == 0
        self.d, self.h, self.hd = d, num_heads, d // num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query = nn.Linear(d, d)
        self.W_key = nn.Linear(d, d)
        self.W_value = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.linear1 = nn.Linear(d, 4 * d)
        self.linear2 = nn.Linear(4 * d, d)
        ones = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("future", ones.triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, d = x.shape
        x = self.norm1(x)
        q = self.W_query(x).view(b, T, self.h, self.hd).transpose(1, 2)
        k = self.W_key(x).view(b, T, self.h, self.hd).transpose(1, 2)
        v = self.W_value(x).view(b, T, self.h, self.hd).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        scores = scores.masked_fill(self.future[:T, :T], -torch.inf)
        context = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, T, d)
        y = x + self.out_proj(context)
        return y + self.linear2(F.gelu(self.linear1(self.norm2(y))))
""",
)

add(
    "TransformerBlock",
    "r_erf_and_slices",
    False,
    "Head by head, GELU by erf, the mask made in forward.",
    """
class TransformerBlock(nn.Module):
    def __init__(self, d: int, num_heads: int, context_length: int) -> None:
        super().__init__()
        if d % num_heads:
            raise ValueError(f"{num_heads} heads cannot share a width of {d}")
        self.hd = d // num_heads
        self.norm1 = nn.LayerNorm(d)
        for name in ["W_query", "W_key", "W_value", "out_proj"]:
            self.add_module(name, nn.Linear(d, d))
        self.norm2 = nn.LayerNorm(d)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def _attend(self, x: torch.Tensor) -> torch.Tensor:
        place = torch.arange(x.shape[1], device=x.device)
        later = place[None] > place[:, None]
        found = []
        triples = zip(*(layer(x).split(self.hd, -1) for layer in (self.W_query, self.W_key, self.W_value)))
        for q, k, v in triples:
            scores = (q * self.hd**-0.5) @ k.mT
            found.append(scores.masked_fill(later, -math.inf).softmax(-1) @ v)
        return self.out_proj(torch.cat(found, -1))

    def _mlp(self, x: torch.Tensor) -> torch.Tensor:
        z = self.linear1(x)
        return self.linear2(0.5 * z * (1 + torch.erf(z / math.sqrt(2))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.add(x, self._attend(self.norm1(x)))
        return torch.add(y, self._mlp(self.norm2(y)))
""",
)

add(
    "heads_by_hand",
    "w_strength_10",
    True,
    "The strength 10 does not allow for the division by sqrt(d_k): the scores are 10 / sqrt(d_k), so from four places or "
    "words on, weights are off by more than 0.01.",
    """
def heads_by_hand(
    head: str,
    num_words: int,
    num_places: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    n = num_words + num_places
    strength = 10.0
    W_value = torch.eye(n, num_words)
    if head == "same word":
        W_query = strength * torch.eye(n, num_words)
        W_key = torch.eye(n, num_words)
        return W_query, W_key, W_value
    W_query = torch.zeros(n, num_places)
    W_key = torch.zeros(n, num_places)
    W_key[num_words:] = torch.eye(num_places)
    for p in range(num_places):
        if head == "itself":
            W_query[num_words + p, p] = strength
        elif head == "first":
            W_query[num_words + p, 0] = strength
        elif head == "previous":
            W_query[num_words + p, max(p - 1, 0)] = strength
    return W_query, W_key, W_value
""",
)

add(
    "heads_by_hand",
    "w_numpy_float64",
    True,
    "The matrices come from np.eye and torch.from_numpy and so are float64, where float32 is asked for.",
    """
import numpy as np


def heads_by_hand(
    head: str,
    num_words: int,
    num_places: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    n, big = num_words + num_places, 1000.0
    W_value = np.eye(n)[:, :num_words]
    words = np.eye(n)[:, :num_words]
    places = np.eye(n)[:, num_words:]
    queries = {
        "itself": places,
        "first": np.outer(np.ones(n), np.eye(num_places)[0]) * places.sum(1, keepdims=True),
        "previous": places @ np.eye(num_places, k=-1),
        "average": np.zeros((n, num_places)),
        "same word": words,
    }
    W_query = big * queries[head]
    W_key = words if head == "same word" else places
    return tuple(torch.from_numpy(np.array(m)) for m in (W_query, W_key, W_value))
""",
)

add(
    "heads_by_hand",
    "r_square_matrices",
    False,
    "d_k is the width of a token for every head.",
    """
def heads_by_hand(
    head: str,
    num_words: int,
    num_places: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    n = num_words + num_places
    sure = 50.0 * n  # divided by sqrt(n) this is still large
    is_word = (torch.arange(n) < num_words).float()
    is_place = 1 - is_word
    W_query, W_key = torch.zeros(n, n), torch.zeros(n, n)
    if head == "itself":
        W_query, W_key = sure * torch.diag(is_place), torch.diag(is_place)
    elif head == "same word":
        W_query, W_key = sure * torch.diag(is_word), torch.diag(is_word)
    elif head == "first":
        W_query[:num_words, 0] = sure
        W_key[num_words, 0] = 1.0
    elif head == "previous":
        # a key says which position comes after it
        W_query = sure * torch.diag(is_place)
        for place in range(num_words, n - 1):
            W_key[place, place + 1] = 1.0
    elif head != "average":
        raise ValueError(head)
    return W_query, W_key, torch.eye(n)[:, :num_words].clone()
""",
)

add(
    "generate",
    "w_crops_the_text",
    True,
    "`tokens = tokens[:, -context_length:]` in the loop throws away the beginning of the text itself, so the result has "
    "fewer than T + n tokens as soon as a step begins with more than context_length tokens.",
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
    "w_eval_and_flat_argmax",
    True,
    "Two: model.eval() is called and the mode is not restored, so a model in training does not stay in it; and argmax() "
    "without dim gives one index into all rows together, so with b > 1 every prompt gets the same token, which may even "
    "be V or more.",
    """
@torch.no_grad()
def generate(
    model: Callable[[torch.Tensor], torch.Tensor],
    tokens: torch.Tensor,
    n: int,
    context_length: int,
) -> torch.Tensor:
    model.eval()
    out = tokens.clone()
    for _ in range(n):
        logits = model(out[:, -context_length:])
        next_token = logits[:, -1].argmax()
        out = torch.cat([out, next_token.expand(len(out), 1)], dim=1)
    return out
""",
)

add(
    "generate",
    "r_buffer",
    False,
    "Writes into a tensor of the final length.",
    """
def generate(
    model: Callable[[torch.Tensor], torch.Tensor],
    tokens: torch.Tensor,
    n: int,
    context_length: int,
) -> torch.Tensor:
    b, T = tokens.shape
    text = tokens.new_zeros((b, T + n), dtype=torch.int64)
    text[:, :T] = tokens
    for end in range(T, T + n):
        begin = max(0, end - context_length)
        with torch.no_grad():
            logits = model(text[:, begin:end].clone())
        text[:, end] = logits[:, -1].max(dim=-1).indices
    return text
""",
)

add(
    "sample_next",
    "w_global_threshold",
    True,
    "The threshold is the smallest of all rows' top k values (`.min()` without dim), so with several rows some rows can "
    "draw tokens that are not among their k largest.",
    """
def sample_next(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1)
    k = min(top_k, logits.shape[-1])
    threshold = torch.topk(logits, k, dim=-1).values.min()
    filtered = torch.where(logits < threshold, torch.full_like(logits, -torch.inf), logits)
    probs = torch.softmax(filtered / temperature, dim=-1)
    return torch.multinomial(probs, num_samples=1).squeeze(-1)
""",
)

add(
    "sample_next",
    "r_gumbel",
    False,
    "Gumbel noise on the k largest logits, then argmax.",
    """
def sample_next(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    ranked, tokens = torch.sort(logits, dim=-1, descending=True)
    ranked, tokens = ranked[:, :top_k], tokens[:, :top_k]
    if temperature > 0:
        uniform = torch.rand_like(ranked).clamp(min=torch.finfo(ranked.dtype).tiny)
        ranked = ranked / temperature - torch.log(-torch.log(uniform))
    winner = ranked.argmax(dim=-1, keepdim=True)
    return torch.take_along_dim(tokens, winner, dim=-1)[:, 0]
""",
)

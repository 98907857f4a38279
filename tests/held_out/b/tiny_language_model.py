"""Blind answers to tiny_language_model: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ---------------------------------------------------------------- sinusoidal_positions
add(
    "sinusoidal_positions",
    "tutorial_loop",
    True,
    "Two: in the loops `i` already is the column (0, 2, 4, ...), but the exponent is 2 * i / d, twice what it "
    "should be, and the cosine in column i + 1 takes the exponent 2 * (i + 1) / d, so it does not share the angle "
    "of its sine; shows from position 1 on in every column but column 0.",
    """
def sinusoidal_positions(num_tokens: int, d: int) -> torch.Tensor:
    pe = torch.zeros(num_tokens, d)
    for pos in range(num_tokens):
        for i in range(0, d, 2):
            pe[pos, i] = math.sin(pos / (10000 ** ((2 * i) / d)))
            pe[pos, i + 1] = math.cos(pos / (10000 ** ((2 * (i + 1)) / d)))
    return pe
""",
)

add(
    "sinusoidal_positions",
    "numpy_port_float64",
    True,
    "The table is computed in NumPy and turned into a tensor by torch.from_numpy, so the result is float64, not "
    "float32; shows in the dtype of every result, the numbers are right.",
    '''
import numpy as np


def _angles(num_tokens, d):
    position = np.arange(num_tokens)[:, np.newaxis]
    column = np.arange(d)[np.newaxis, :]
    rates = 1 / np.power(10000, 2 * (column // 2) / d)
    return position * rates


def sinusoidal_positions(num_tokens: int, d: int) -> torch.Tensor:
    """Ported from our NumPy code base."""
    table = _angles(num_tokens, d)
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[:, 1::2] = np.cos(table[:, 1::2])
    return torch.from_numpy(table)
''',
)

add(
    "sinusoidal_positions",
    "complex_exponential",
    False,
    "Real and imaginary part of a complex exponential, in float64 until the end.",
    """
def sinusoidal_positions(num_tokens: int, d: int) -> torch.Tensor:
    pair = torch.arange(d // 2, dtype=torch.float64)
    theta = torch.pow(torch.tensor(10000.0, dtype=torch.float64), -2 * pair / d)
    angles = torch.outer(torch.arange(num_tokens, dtype=torch.float64), theta)
    unit = torch.polar(torch.ones_like(angles), angles)  # cos + i sin
    as_pairs = torch.view_as_real(unit)  # (T, d / 2, 2): cos, sin
    return as_pairs.flip(-1).reshape(num_tokens, d).float()
""",
)

# --------------------------------------------------------------------- next_token_loss
add(
    "next_token_loss",
    "ignores_token_zero",
    True,
    "cross_entropy is called with ignore_index=0, as if token 0 were padding, so predictions whose right token is 0 "
    "are left out of the mean (and the loss is nan if all are); shows as soon as a token after the first is 0.",
    """
PAD = 0


def next_token_loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    shifted_logits = logits[:, :-1, :].contiguous()
    shifted_labels = tokens[:, 1:].contiguous()
    return F.cross_entropy(
        shifted_logits.view(-1, shifted_logits.size(-1)),
        shifted_labels.view(-1),
        ignore_index=PAD,
    )
""",
)

add(
    "next_token_loss",
    "clamped_and_per_sentence_shift",
    True,
    "Two: probabilities are clamped to 1e-9 before the logarithm, so a prediction far off (logits in the thousands) "
    "costs 20.7 at most and gets no gradient; and the logits are cut by logits[:, 1:], so each position is compared "
    "with its own token, not with the next one.",
    """
def next_token_loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    predictions = logits[:, 1:]
    targets = tokens[:, 1:]
    probs = predictions.softmax(dim=-1)
    picked = probs.gather(-1, targets[..., None]).clamp(min=1e-9)
    return -picked.log().mean()
""",
)

add(
    "next_token_loss",
    "one_hot_einsum",
    False,
    "logsumexp minus the right logit by a one-hot einsum.",
    """
def next_token_loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    b, T, V = logits.shape
    z, target = logits[:, : T - 1], tokens[:, 1:T]
    z = z - z.detach().amax(dim=-1, keepdim=True)  # changes no probability
    log_z = torch.logsumexp(z, dim=-1)
    right = torch.einsum("btv,btv->bt", z, F.one_hot(target, V).to(z.dtype))
    per_sentence = (log_z - right).mean(dim=1)  # all have T - 1 predictions
    return per_sentence.mean(dim=0)
""",
)

# ---------------------------------------------------------------- hunt_next_token_loss
add(
    "hunt_next_token_loss",
    "all_logits_equal",
    True,
    "Two sentences, but all logits are 0, so every prediction costs ln 2 whatever its target is, and both functions "
    "give the same number.",
    """
def hunt_next_token_loss() -> tuple[torch.Tensor, torch.Tensor]:
    logits = torch.zeros(2, 2, 2)
    tokens = torch.tensor([[0, 1], [1, 0]])
    return logits, tokens
""",
)

# -------------------------------------------------------------------- TransformerBlock
add(
    "TransformerBlock",
    "residual_of_the_normed",
    True,
    "In forward `x = self.norm1(x)` and `x = self.norm2(x)` overwrite x, so each part is added to the normalised "
    "input and not to the residual stream; shows for every input whose tokens are not normalised already.",
    """
class TransformerBlock(nn.Module):
    def __init__(self, d: int, num_heads: int, context_length: int) -> None:
        super().__init__()
        if d % num_heads:
            raise ValueError(f"{d} is not divisible by {num_heads}")
        self.h = num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query = nn.Linear(d, d)
        self.W_key = nn.Linear(d, d)
        self.W_value = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.linear1 = nn.Linear(d, 4 * d)
        self.linear2 = nn.Linear(4 * d, d)

    def _split(self, t):
        return t.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def _attend(self, x):
        q, k, v = map(self._split, (self.W_query(x), self.W_key(x), self.W_value(x)))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(o.transpose(1, 2).flatten(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm1(x)
        x = x + self._attend(x)
        x = self.norm2(x)
        x = x + self.linear2(F.gelu(self.linear1(x)))
        return x
""",
)

add(
    "TransformerBlock",
    "gelu_new_from_gpt2",
    True,
    "The activation is nn.GELU(approximate='tanh'), GPT-2's approximation, where the text asks for the exact GELU; "
    "results are off by up to about 1e-3, in float64 most clearly.",
    '''
class TransformerBlock(nn.Module):
    """GPT-2 style pre-norm block."""

    def __init__(self, d: int, num_heads: int, context_length: int) -> None:
        super().__init__()
        assert d % num_heads == 0, "num_heads must divide d"
        self.num_heads, self.head_dim = num_heads, d // num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query, self.W_key, self.W_value = (nn.Linear(d, d) for _ in range(3))
        self.out_proj = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.linear1, self.linear2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.act = nn.GELU(approximate="tanh")
        causal = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("bias", causal, persistent=False)

    def attention(self, h: torch.Tensor) -> torch.Tensor:
        B, T, C = h.size()
        q = self.W_query(h).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.W_key(h).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        v = self.W_value(h).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(~self.bias[:T, :T], float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.out_proj(y.transpose(1, 2).contiguous().view(B, T, C))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.linear2(self.act(self.linear1(self.norm2(x))))
''',
)

add(
    "TransformerBlock",
    "mask_cached_at_first_call",
    True,
    "forward keeps the causal mask of the first call in self.cached and uses it again for every later call, cut only "
    "if the new text is not longer, so a longer text after a shorter one fails: there the mask does not fit the "
    "scores.",
    """
class TransformerBlock(nn.Module):
    def __init__(self, d: int, num_heads: int, context_length: int) -> None:
        super().__init__()
        if d % num_heads != 0:
            raise ValueError("num_heads must divide d")
        self.num_heads = num_heads
        self.head_dim = d // num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query = nn.Linear(d, d)
        self.W_key = nn.Linear(d, d)
        self.W_value = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.linear1 = nn.Linear(d, 4 * d)
        self.linear2 = nn.Linear(4 * d, d)
        self.cached = None  # building the mask in each call was slow

    def _mask(self, T, device):
        if self.cached is None:
            self.cached = torch.ones(T, T, dtype=torch.bool, device=device).triu(1)
        return self.cached[:T, :T]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, d = x.shape
        heads = lambda t: t.reshape(b, T, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        n = self.norm1(x)
        q, k, v = heads(self.W_query(n)), heads(self.W_key(n)), heads(self.W_value(n))
        s = q @ k.mT / math.sqrt(self.head_dim)
        s = s.masked_fill(self._mask(T, x.device), -math.inf)
        a = (torch.softmax(s, dim=-1) @ v).permute(0, 2, 1, 3).reshape(b, T, d)
        y = x + self.out_proj(a)
        return y + self.linear2(F.gelu(self.linear1(self.norm2(y))))
""",
)

add(
    "TransformerBlock",
    "calls_the_library_layer_functions",
    False,
    "Attention by F.multi_head_attention_forward with separate projections joined into one weight.",
    """
class TransformerBlock(nn.Module):
    def __init__(self, d: int, num_heads: int, context_length: int) -> None:
        super().__init__()
        if num_heads < 1 or d % num_heads != 0:
            raise ValueError(f"num_heads = {num_heads} does not divide d = {d}")
        self.d, self.num_heads, self.context_length = d, num_heads, context_length
        self.norm1 = nn.LayerNorm(d)
        self.W_query = nn.Linear(d, d, bias=True)
        self.W_key = nn.Linear(d, d, bias=True)
        self.W_value = nn.Linear(d, d, bias=True)
        self.out_proj = nn.Linear(d, d, bias=True)
        self.norm2 = nn.LayerNorm(d)
        self.linear1 = nn.Linear(d, 4 * d)
        self.linear2 = nn.Linear(4 * d, d)

    def _attention(self, x: torch.Tensor) -> torch.Tensor:
        weight = torch.cat([self.W_query.weight, self.W_key.weight, self.W_value.weight])
        bias = torch.cat([self.W_query.bias, self.W_key.bias, self.W_value.bias])
        query, key, value = (
            part.unflatten(-1, (self.num_heads, -1)).movedim(-2, 1)
            for part in F.linear(x, weight, bias).chunk(3, dim=-1)
        )
        T = x.shape[1]
        seen = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        return self.out_proj(heads.movedim(1, -2).flatten(-2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual = x
        x = residual + self._attention(self.norm1(x))
        residual = x
        hidden = F.gelu(self.linear1(self.norm2(x)))
        return residual + self.linear2(hidden)
""",
)

# ----------------------------------------------------------------------- heads_by_hand
add(
    "heads_by_hand",
    "sharpness_not_scaled_by_root",
    True,
    "SHARP = 10 is put into the query as it is, and the scores are later divided by sqrt(d_k), which is the number "
    "of places or words here: with 16 places the score is 2.5 and the head is far from sure; shows if there are more "
    "than a few places or words.",
    """
SHARP = 10.0


def heads_by_hand(
    head: str,
    num_words: int,
    num_places: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    width = num_words + num_places
    eye = torch.eye(width)
    word, place = eye[:, :num_words], eye[:, num_words:]
    W_value = word.clone()
    if head == "same word":
        return SHARP * word, word.clone(), W_value
    if head == "average":
        return torch.zeros(width, 1), torch.zeros(width, 1), W_value
    wanted = torch.zeros(num_places, num_places)  # row: query's place
    for i in range(num_places):
        j = {"itself": i, "first": 0, "previous": max(i - 1, 0)}[head]
        wanted[i, j] = SHARP
    return place @ wanted, place.clone(), W_value
""",
)

add(
    "heads_by_hand",
    "log_of_the_wanted_weights",
    False,
    "A table of wanted scores for places and one for words, the query being the row of the table.",
    """
def heads_by_hand(
    head: str,
    num_words: int,
    num_places: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    width = num_words + num_places
    scores = torch.zeros(width, width)  # between two elements of the tokens
    words, places = slice(0, num_words), slice(num_words, width)
    strong = 50.0
    if head == "itself":
        scores[places, places].fill_diagonal_(strong)
    elif head == "first":
        scores[places, num_words] = strong
    elif head == "previous":
        table = torch.zeros(num_places, num_places)
        table[0, 0] = strong
        later = torch.arange(1, num_places)
        table[later, later - 1] = strong
        scores[places, places] = table
    elif head == "same word":
        scores[words, words].fill_diagonal_(strong)
    elif head != "average":
        raise ValueError(f"unknown head {head!r}")
    W_query = scores * width**0.5  # softmax divides by the root of d_k = width
    W_key = torch.eye(width)
    W_value = torch.eye(width, num_words)
    return W_query, W_key, W_value
""",
)

# ---------------------------------------------------------------------------- generate
add(
    "generate",
    "eval_and_back_to_train",
    True,
    "Two: the model is switched by model.eval() and afterwards always by model.train(), so a model that was in "
    "evaluation comes back in training (and one in training writes in evaluation mode); and the next "
    "token is taken from logits[:, 0], the first position of the window, instead of its last, which shows for every "
    "prompt longer than one token.",
    """
@torch.no_grad()
def generate(
    model: Callable[[torch.Tensor], torch.Tensor],
    tokens: torch.Tensor,
    n: int,
    context_length: int,
) -> torch.Tensor:
    model.eval()
    b, T = tokens.shape
    text = tokens.new_zeros(b, T + n)
    text[:, :T] = tokens
    for end in range(T, T + n):
        window = text[:, max(0, end - context_length) : end]
        logits = model(window)
        text[:, end] = logits[:, 0].argmax(dim=-1)
    model.train()
    return text
""",
)

add(
    "generate",
    "one_argmax_for_the_batch",
    True,
    "argmax() without a dim is taken over the logits of all sentences together and reduced modulo V, so every "
    "sentence gets the token of the one with the largest logit; shows in batches of several prompts that continue "
    "differently.",
    """
def generate(
    model: Callable[[torch.Tensor], torch.Tensor],
    tokens: torch.Tensor,
    n: int,
    context_length: int,
) -> torch.Tensor:
    out = tokens.clone()
    with torch.inference_mode():
        for step in range(n):
            logits = model(out[:, -context_length:])[:, -1]
            best = logits.argmax() % logits.shape[-1]
            out = torch.cat([out, best.expand(out.shape[0], 1)], dim=1)
    return out.clone()
""",
)

# ------------------------------------------------------------------------- sample_next
add(
    "sample_next",
    "rank_returned",
    True,
    "multinomial draws among the top_k sorted values, and its result, the rank, is returned without looking up "
    "`order`, so the token is wrong unless the logits happen to be sorted from large to small.",
    """
def sample_next(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    k = min(top_k, logits.shape[-1])
    values, order = torch.sort(logits, dim=-1, descending=True)
    if temperature == 0:
        return order[:, 0]
    probs = F.softmax(values[:, :k] / temperature, dim=-1)
    choice = torch.multinomial(probs, num_samples=1)
    return choice.squeeze(1)
""",
)

add(
    "sample_next",
    "fixed_generator",
    True,
    "A new generator with the seed 0 is made in every call, for reproducible texts, so two calls with the same "
    "logits draw exactly the same tokens.",
    """
def sample_next(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    if temperature == 0:
        return torch.argmax(logits, dim=-1)
    rng = torch.Generator(device=logits.device).manual_seed(0)
    values, indices = logits.topk(min(top_k, logits.shape[-1]), dim=-1)
    p = torch.softmax(values / temperature, dim=-1)
    drawn = torch.multinomial(p, 1, generator=rng)
    return indices.gather(-1, drawn).squeeze(-1)
""",
)

add(
    "sample_next",
    "gumbel_max",
    False,
    "Draws by adding Gumbel noise to the scaled top k logits and taking the largest.",
    """
def sample_next(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    k = min(int(top_k), logits.shape[-1])
    values, tokens = torch.topk(logits, k, dim=-1)
    if temperature == 0:
        return tokens[:, 0]
    exponential = torch.empty_like(values).exponential_()
    gumbel = -torch.log(exponential.clamp(min=torch.finfo(values.dtype).tiny))
    winner = (values / temperature + gumbel).argmax(dim=-1, keepdim=True)
    return tokens.gather(-1, winner).squeeze(-1)
""",
)

"""Blind answers to self_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ------------------------------------------------------------------------- build_vocab
add(
    "build_vocab",
    "regex_splits_at_commas",
    True,
    "re.split(r'[,\\s]+') treats a comma as a separator, so `Yes,no` becomes two words instead of `Yesno`; shows "
    "only where a comma has no white space beside it.",
    """
import re


def build_vocab(sentence: str) -> dict[str, int]:
    tokens = [t for t in re.split(r"[,\\s]+", sentence) if t]
    return {token: index for index, token in enumerate(sorted(set(tokens)))}
""",
)

# ------------------------------------------------------------------------------ encode
add(
    "encode",
    "squeezed_single_word",
    True,
    "The trailing .squeeze() turns the tokens of a one-word sentence into a 0-d tensor, not one of shape (1,).",
    """
def encode(sentence: str, vocab: dict[str, int]) -> torch.Tensor:
    words = "".join(ch for ch in sentence if ch != ",").split()
    tokens = torch.empty(len(words), 1, dtype=torch.long)
    for row, word in enumerate(words):
        tokens[row] = vocab[word]
    return tokens.squeeze()
""",
)

# ------------------------------------------------------------------------------- embed
add(
    "embed",
    "from_pretrained_is_frozen",
    True,
    "nn.Embedding.from_pretrained freezes the table (freeze=True is the default), so no gradient flows to `table`; "
    "the values are right.",
    """
def embed(tokens: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    layer = nn.Embedding.from_pretrained(table)
    return layer(tokens)
""",
)

add(
    "embed",
    "one_hot_sum_limited",
    False,
    "A product of a one-hot matrix in the table's dtype with the table.",
    """
def embed(tokens: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    num_rows = table.shape[0]
    selector = F.one_hot(tokens, num_classes=num_rows).to(dtype=table.dtype, device=table.device)
    return torch.einsum("tv,vd->td", selector, table)
""",
)

# ------------------------------------------------------------------------- project_qkv
add(
    "project_qkv",
    "guesses_the_layout",
    True,
    "The helper transposes a weight whenever its last size equals d_in, which is meant for (d_out, d_in) weights but "
    "also hits a square (d_in, d_in) weight; shows where d_k or d_v equals d_in.",
    '''
def _project(x, W):
    """Works for both layouts, (d_in, d_out) and nn.Linear's (d_out, d_in)."""
    if W.shape[-1] == x.shape[-1]:
        return F.linear(x, W)
    return x @ W


def project_qkv(
    inputs: torch.Tensor,
    W_query: torch.Tensor,
    W_key: torch.Tensor,
    W_value: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return _project(inputs, W_query), _project(inputs, W_key), _project(inputs, W_value)
''',
)

# ------------------------------------------------------------------- linear_projection
add(
    "linear_projection",
    "einsum_for_matrices_only",
    True,
    "The einsum 'td,od->to' names exactly two dimensions of the inputs, so inputs of any other number of leading "
    "dimensions, a single vector or a batch, raise an error.",
    """
def linear_projection(inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.einsum("td,od->to", inputs, weight)
""",
)

# -------------------------------------------------------------------- attention_scores
add(
    "attention_scores",
    "tensordot_crosses_batches",
    True,
    "torch.tensordot over the last dimensions (NumPy's np.tensordot habit) scores queries against the keys of all "
    "sequences, giving (b, Tq, b, Tk); shows with any leading dimension.",
    """
def attention_scores(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    # contract the feature axis of both, everything else stays
    return torch.tensordot(queries, keys, dims=([-1], [-1]))
""",
)

# ---------------------------------------------------------------------- scaled_softmax
add(
    "scaled_softmax",
    "one_maximum_for_all",
    True,
    "The maximum of the whole tensor is subtracted, not that of each row, so a row far below the largest score "
    "(more than about 100 after scaling) underflows to 0 / 0 = NaN.",
    """
def stable_softmax(x):
    shifted = x - x.max()
    e = torch.exp(shifted)
    return e / e.sum(-1, keepdim=True)


def scaled_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    return stable_softmax(scores / math.sqrt(d_k))
""",
)

add(
    "scaled_softmax",
    "log_space",
    False,
    "exp of (scores - logsumexp), after multiplying by the inverse root.",
    """
def scaled_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    scale = 1.0 / math.sqrt(float(d_k))
    logits = scores.mul(scale)
    logits = logits.sub(logits.amax(dim=-1, keepdim=True).detach())
    log_z = logits.logsumexp(dim=-1, keepdim=True)
    return logits.sub(log_z).exp()
""",
)

# --------------------------------------------------------------------- context_vectors
add(
    "context_vectors",
    "broadcast_one_axis_off",
    True,
    "values.unsqueeze(-2) puts the new dimension behind the keys instead of before them, so weight (i, j) meets "
    "value i and not value j: each row is its own value times its sum of weights where Tq = Tk, and an error "
    "elsewhere.",
    """
def context_vectors(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    w = weights.unsqueeze(-1)  # (..., Tq, Tk, 1)
    v = values.unsqueeze(-2)
    return (w * v).sum(dim=-2)
""",
)

# -------------------------------------------------------------- single_query_attention
add(
    "single_query_attention",
    "root_of_number_of_keys",
    True,
    "The scale is len(keys) ** -0.5, the root of the number of tokens and not of the width d_k; shows unless T = d_k.",
    """
def single_query_attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    scale = len(keys) ** -0.5
    scores = torch.mv(keys, query) * scale
    alpha = scores.softmax(dim=0)
    return alpha @ values
""",
)

# -------------------------------------------------------- scaled_dot_product_attention
add(
    "scaled_dot_product_attention",
    "query_chunks_drop_the_rest",
    True,
    "Queries are handled in chunks of 4, and range(Tq // chunk) leaves out the last, shorter chunk, so the result "
    "misses rows whenever Tq is above 4 and no multiple of 4.",
    """
CHUNK = 4  # keeps the score matrix small


def scaled_dot_product_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    Tq, d_k = queries.shape[-2:]
    chunk = min(CHUNK, Tq)
    rows = []
    for c in range(Tq // chunk):
        block = queries[..., c * chunk : (c + 1) * chunk, :]
        scores = block @ keys.transpose(-1, -2) / math.sqrt(d_k)
        rows.append(torch.softmax(scores, dim=-1) @ values)
    return torch.cat(rows, dim=-2)
""",
)

# --------------------------------------------------- hunt_scaled_dot_product_attention
add(
    "hunt_scaled_dot_product_attention",
    "a_single_key",
    True,
    "There is only one key, so its weight is 1 whatever the scores are divided by, and both functions return the "
    "value.",
    """
def hunt_scaled_dot_product_attention() -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(0)
    queries = torch.randn(1, 4, generator=g)
    keys = torch.randn(1, 4, generator=g)
    values = torch.randn(1, 2, generator=g)  # another width than the keys
    return queries, keys, values
""",
)

# ---------------------------------------------------------------------- score_variance
add(
    "score_variance",
    "scaled_by_the_root",
    True,
    "The second variance is the first divided by sqrt(d_k); dividing scores by sqrt(d_k) divides their variance by "
    "d_k, so it is too large by the factor sqrt(d_k) unless d_k = 1.",
    """
def score_variance(
    queries: torch.Tensor,
    keys: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    raw = (queries @ keys.mT).var()
    return raw, raw / keys.shape[-1] ** 0.5
""",
)

# -------------------------------------------------------------------- SelfAttention_v1
add(
    "SelfAttention_v1",
    "scale_of_the_input",
    True,
    "self.scale is d_in ** -0.5, the width of the input, and not of a key, d_out; shows if d_in and d_out differ.",
    """
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.scale = d_in**-0.5
        make = lambda: nn.Parameter(torch.rand(d_in, d_out))
        self.W_query, self.W_key, self.W_value = make(), make(), make()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (x @ W for W in (self.W_query, self.W_key, self.W_value))
        return torch.softmax(self.scale * (q @ k.t()), dim=-1) @ v
""",
)

add(
    "SelfAttention_v1",
    "weights_remembered",
    True,
    "The product W_query @ W_key.T is computed once, detached, and kept in self._qk for later calls, so W_query and "
    "W_key get no gradient, and a later change of the weights (training, given weights, .to(float64)) has no effect "
    "on the scores.",
    """
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self._qk = None

    @property
    def qk(self):
        if self._qk is None:  # x W_q W_k^T x^T: multiply the weights only once
            self._qk = (self.W_query @ self.W_key.T).detach()
        return self._qk

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        d_k = self.W_key.shape[1]
        scores = x @ self.qk @ x.T
        return torch.softmax(scores / d_k**0.5, dim=-1) @ (x @ self.W_value)
""",
)

# -------------------------------------------------------------------- SelfAttention_v2
add(
    "SelfAttention_v2",
    "functional_without_bias",
    True,
    "forward calls F.linear with the layers' weights only, so with qkv_bias=True the biases exist but are not added "
    "and get no gradient.",
    """
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # one large product instead of three small ones
        fused = torch.cat([self.W_query.weight, self.W_key.weight, self.W_value.weight])
        q, k, v = F.linear(x, fused).chunk(3, dim=-1)
        return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]
""",
)

add(
    "SelfAttention_v2",
    "value_without_bias_softmax_over_queries",
    True,
    "Two: the bias is passed to W_query and W_key only, W_value never has one; and nn.Softmax(dim=0) normalises "
    "over the queries, so the columns and not the rows of the weights sum to 1.",
    """
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.softmax = nn.Softmax(dim=0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.W_query(x) @ self.W_key(x).transpose(-2, -1)
        attn = self.softmax(scores / self.d_out**0.5)
        return attn @ self.W_value(x)
""",
)

# ------------------------------------------------------------------------ copy_weights
add(
    "copy_weights",
    "data_is_shared",
    True,
    "`.weight.data = p.data.T` makes v2's weight a view of v1's memory, so in-place changes of v1 in later training "
    "show in v2; the outputs right after the call are equal.",
    """
def copy_weights(v1: SelfAttention_v1, v2: SelfAttention_v2) -> None:
    for name, p in v1.named_parameters():
        layer = getattr(v2, name)
        layer.weight.data = p.data.T
        if layer.bias is not None:
            layer.bias.data.zero_()
""",
)

add(
    "copy_weights",
    "new_parameters_old_bias",
    True,
    "Two: v2's weights are replaced by new nn.Parameter objects, so an optimizer that was made for v2 before no "
    "longer trains it; and the biases are left as they are, so the outputs differ with qkv_bias=True.",
    """
def copy_weights(v1: SelfAttention_v1, v2: SelfAttention_v2) -> None:
    v2.W_query.weight = nn.Parameter(v1.W_query.detach().T.clone())
    v2.W_key.weight = nn.Parameter(v1.W_key.detach().T.clone())
    v2.W_value.weight = nn.Parameter(v1.W_value.detach().T.clone())
""",
)

add(
    "copy_weights",
    "by_state_dict",
    False,
    "Builds a state dict and loads it, which copies into v2's own parameters.",
    """
def copy_weights(v1: SelfAttention_v1, v2: SelfAttention_v2) -> None:
    source = v1.state_dict()
    target = {}
    for name, old in v2.state_dict().items():
        layer, kind = name.rsplit(".", 1)
        target[name] = source[layer].t() if kind == "weight" else torch.zeros_like(old)
    v2.load_state_dict(target, strict=True)
""",
)

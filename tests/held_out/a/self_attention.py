"""Blind answers to self_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


add(
    "build_vocab",
    "w_lower",
    True,
    "`key=str.lower` sorts without regard to case, so capitals do not come first, as they do in Python's sort order.",
    """
def build_vocab(sentence: str) -> dict[str, int]:
    words = sentence.replace(",", "").split()
    unique = sorted(set(words), key=str.lower)
    return {word: i for i, word in enumerate(unique)}
""",
)

add(
    "encode",
    "w_skips_unknown",
    True,
    "The condition `if w in vocab` drops words that are not in the vocabulary, so no KeyError is raised and the tensor is "
    "too short.",
    """
def encode(sentence: str, vocab: dict[str, int]) -> torch.Tensor:
    ids = [vocab[w] for w in sentence.replace(",", "").split() if w in vocab]
    return torch.tensor(ids, dtype=torch.int64)
""",
)

add(
    "embed",
    "w_from_pretrained_frozen",
    True,
    "nn.Embedding.from_pretrained freezes the table by default (freeze=True, its weight is a detached parameter), so no "
    "gradient flows to the table.",
    """
def embed(tokens: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    layer = nn.Embedding.from_pretrained(table)
    return layer(tokens)
""",
)

add(
    "embed",
    "r_one_hot",
    False,
    "A product of one-hot rows with the table; one_hot raises for a token that is too large.",
    """
def embed(tokens: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    picks = F.one_hot(tokens, num_classes=len(table))   # (T, V)
    return picks.to(table.dtype) @ table
""",
)

add(
    "project_qkv",
    "w_chunk",
    True,
    "Joins the three weights and cuts the product with chunk(3), which makes three equal pieces: if d_v differs from d_k "
    "the pieces have wrong widths and numbers.",
    """
def project_qkv(
    inputs: torch.Tensor,
    W_query: torch.Tensor,
    W_key: torch.Tensor,
    W_value: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    # one big matmul is faster than three small ones
    W_qkv = torch.cat([W_query, W_key, W_value], dim=1)
    queries, keys, values = (inputs @ W_qkv).chunk(3, dim=-1)
    return queries, keys, values
""",
)

add(
    "linear_projection",
    "w_guess_orientation",
    True,
    "Decides by the shape whether to transpose; a square weight fits as it is, so it is not transposed and the result is "
    "that of the transposed layer.",
    """
def linear_projection(inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    # transpose only if needed
    if inputs.shape[-1] != weight.shape[0]:
        weight = weight.T
    return inputs @ weight
""",
)

add(
    "attention_scores",
    "w_reshape_keys",
    True,
    "Reshapes keys to (..., d_k, Tk) where they should be transposed: the shape is right, but the numbers are in the wrong "
    "places unless Tk or d_k is 1.",
    """
def attention_scores(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    *lead, Tk, d_k = keys.shape
    return torch.matmul(queries, keys.reshape(*lead, d_k, Tk))
""",
)

add(
    "scaled_softmax",
    "w_inplace_dim1",
    True,
    "Two: `scores /= ...` divides the caller's tensor in place; and F.softmax(scores, dim=1) is the key dimension only for "
    "a matrix, with one leading dimension it is the queries.",
    """
def scaled_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    scores /= math.sqrt(d_k)
    return F.softmax(scores, dim=1)
""",
)

add(
    "context_vectors",
    "w_squeeze",
    True,
    "The final squeeze(0), meant for the batch dimension that was added, also removes a first dimension of size 1 of the "
    "inputs: with a single query, or one sequence in the batch, the result has a dimension too few.",
    """
def context_vectors(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    Tq, Tk = weights.shape[-2:]
    d_v = values.shape[-1]
    # bmm wants exactly three dimensions
    flat = torch.bmm(weights.reshape(-1, Tq, Tk), values.reshape(-1, Tk, d_v))
    out = flat.reshape(*weights.shape[:-1], d_v)
    return out.squeeze(0)
""",
)

add(
    "single_query_attention",
    "w_root_of_T",
    True,
    "keys.size(0) is the number of tokens T, not the width d_k, so the scores are divided by the wrong root whenever T "
    "differs from d_k.",
    """
def single_query_attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    d_k = keys.size(0)
    scores = keys.mv(query) / d_k ** 0.5
    alpha = scores.softmax(dim=0)
    return (alpha[:, None] * values).sum(dim=0)
""",
)

add(
    "scaled_dot_product_attention",
    "w_axis_one_twice",
    True,
    "Two: d_k = queries.shape[1] is the number of queries once there is a leading dimension; and softmax(dim=1) then runs "
    "over the queries (or heads) and not over the keys.",
    """
def scaled_dot_product_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    d_k = queries.shape[1]
    scores = queries @ keys.transpose(-1, -2)
    weights = torch.softmax(scores / math.sqrt(d_k), dim=1)
    return weights @ values
""",
)

add(
    "scaled_dot_product_attention",
    "r_fourth_root",
    False,
    "Scales queries and keys by the fourth root each.",
    """
def scaled_dot_product_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    root = math.sqrt(math.sqrt(keys.size(-1)))
    logits = torch.einsum("...id,...jd->...ij", queries / root, keys / root)
    logits = logits - logits.detach().amax(-1, keepdim=True)
    unnormalized = logits.exp()
    return torch.matmul(unnormalized, values) / unnormalized.sum(-1).unsqueeze(-1)
""",
)

add(
    "hunt_scaled_dot_product_attention",
    "w_single_key",
    True,
    "There is only one key, so its weight is 1 whatever the scores are divided by, and the wrong function gives the right "
    "result.",
    """
def hunt_scaled_dot_product_attention() -> tuple[torch.Tensor, ...]:
    # values wider than keys: the scale must not come from the values
    queries = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    keys = torch.tensor([[2.0, 5.0]])
    values = torch.tensor([[1.0, 10.0, 100.0]])
    return queries, keys, values
""",
)

add(
    "score_variance",
    "w_mean_of_variances",
    True,
    "Takes the variance over the last two dimensions and averages it over the leading ones; with a batch that is not the "
    "variance of all scores together.",
    """
def score_variance(
    queries: torch.Tensor,
    keys: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = queries @ keys.mT
    scaled = scores / math.sqrt(queries.shape[-1])

    def spread(s):
        return s.var(dim=(-2, -1)).mean()

    return spread(scores), spread(scaled)
""",
)

add(
    "SelfAttention_v1",
    "w_seed_inside",
    True,
    "torch.manual_seed(123) in __init__ makes every instance have the same weights, whatever seed was set before.",
    """
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        torch.manual_seed(123)
        self.d_out = d_out
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        scores = q @ k.T / self.d_out ** 0.5
        return F.softmax(scores, dim=-1) @ v
""",
)

add(
    "SelfAttention_v1",
    "w_no_parameter",
    True,
    "The matrices are plain tensors with requires_grad=True and no nn.Parameter, so parameters() and state_dict() are "
    "empty, and .to(...) does not convert or move them.",
    """
class SelfAttention_v1(nn.Module):
    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = torch.rand(d_in, d_out, requires_grad=True)
        self.W_key = torch.rand(d_in, d_out, requires_grad=True)
        self.W_value = torch.rand(d_in, d_out, requires_grad=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        keys = x @ self.W_key
        queries = x @ self.W_query
        values = x @ self.W_value
        attn_scores = queries @ keys.T
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return attn_weights @ values
""",
)

add(
    "SelfAttention_v2",
    "w_weights_without_bias",
    True,
    "forward multiplies with layer.weight.T and never calls the layers, so with qkv_bias=True the biases are not used and "
    "get no gradient.",
    """
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        queries = x @ self.W_query.weight.T
        keys = x @ self.W_key.weight.T
        values = x @ self.W_value.weight.T
        d_k = keys.size(-1)
        return torch.softmax(queries @ keys.T / d_k**0.5, dim=-1) @ values
""",
)

add(
    "SelfAttention_v2",
    "w_root_of_d_in",
    True,
    "The scores are divided by the root of x.shape[-1], which is d_in and not d_out, the width of a key; wrong where both "
    "differ.",
    """
class SelfAttention_v2(nn.Module):
    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = 1.0 / math.sqrt(x.shape[-1])
        attn = (self.W_query(x) * scale) @ self.W_key(x).transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        return attn @ self.W_value(x)
""",
)

add(
    "SelfAttention_v2",
    "r_setattr_loop",
    False,
    "Layers made in a loop by name, PyTorch's attention in forward.",
    """
class SelfAttention_v2(nn.Module):
    NAMES = ("W_query", "W_key", "W_value")

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        for name in self.NAMES:
            self.add_module(name, nn.Linear(d_in, d_out, bias=bool(qkv_bias)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (getattr(self, name)(x)[None] for name in self.NAMES)
        return F.scaled_dot_product_attention(q, k, v)[0]
""",
)

add(
    "copy_weights",
    "w_reshape",
    True,
    "v1's matrix is reshaped and not transposed before it is copied, so the weights are in the wrong order unless one of "
    "the widths is 1.",
    """
def copy_weights(v1: SelfAttention_v1, v2: SelfAttention_v2) -> None:
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            source = getattr(v1, name)
            layer = getattr(v2, name)
            layer.weight.copy_(source.reshape(layer.weight.shape))
            if layer.bias is not None:
                layer.bias.zero_()
""",
)

add(
    "copy_weights",
    "w_view_and_bias",
    True,
    "Two: `.data = ....data.T` makes v2's weight a view of v1's matrix, so later changes of v1 show in v2; and a bias of "
    "v2's layers is not set to 0.",
    """
def copy_weights(v1: SelfAttention_v1, v2: SelfAttention_v2) -> None:
    v2.W_query.weight.data = v1.W_query.data.T
    v2.W_key.weight.data = v1.W_key.data.T
    v2.W_value.weight.data = v1.W_value.data.T
""",
)

add(
    "copy_weights",
    "r_state_dict",
    False,
    "Builds a state dict and loads it.",
    """
def copy_weights(v1: SelfAttention_v1, v2: SelfAttention_v2) -> None:
    state = v2.state_dict()
    new = {}
    for key, tensor in state.items():
        layer, kind = key.rsplit(".", 1)
        if kind == "weight":
            new[key] = getattr(v1, layer).detach().t().clone()
        else:
            new[key] = torch.zeros_like(tensor)
    v2.load_state_dict(new)
""",
)

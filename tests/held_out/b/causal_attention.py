"""Blind answers to causal_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ------------------------------------------------------------------------- causal_mask
add(
    "causal_mask",
    "numpy_uint8",
    True,
    "The mask is ported from NumPy with dtype uint8 (old PyTorch's mask type) and never converted to bool; the "
    "places are right.",
    """
import numpy as np


def causal_mask(num_tokens: int) -> torch.Tensor:
    shape = (num_tokens, num_tokens)
    return torch.from_numpy(np.triu(np.ones(shape, dtype=np.uint8), k=1))
""",
)

# --------------------------------------------------------- renormalized_causal_weights
add(
    "renormalized_causal_weights",
    "epsilon_in_the_sum",
    True,
    "1e-6 is added to each row's sum against a division by zero, so rows whose visible weights are themselves about "
    "1e-6 or less do not sum to 1.",
    """
def renormalized_causal_weights(weights: torch.Tensor) -> torch.Tensor:
    causal = weights * torch.ones_like(weights).tril()
    return causal / (causal.sum(dim=-1, keepdim=True) + 1e-6)
""",
)

# ----------------------------------------------------------------------- masked_scores
add(
    "masked_scores",
    "infinity_times_zero",
    True,
    "mask.to(scores.dtype) * -inf is 0 * -inf = NaN at every visible place, so all visible scores become NaN.",
    """
def masked_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    penalty = mask.to(scores.dtype) * float("-inf")
    return scores + penalty
""",
)

# ---------------------------------------------------------------------- causal_softmax
add(
    "causal_softmax",
    "maximum_over_hidden_scores",
    True,
    "The maximum that is subtracted is taken over the whole row, hidden scores included, so where a later score is "
    "larger than the visible ones by more than about 100 all visible exponentials are 0 and the row is 0 / 0 = NaN.",
    """
def causal_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    scaled = scores / math.sqrt(d_k)
    stable = scaled - scaled.amax(dim=-1, keepdim=True)
    numerators = torch.exp(stable).tril()  # zero above the diagonal
    return numerators / numerators.sum(dim=-1, keepdim=True)
""",
)

add(
    "causal_softmax",
    "rows_one_by_one",
    False,
    "Each row is a softmax of its visible scores, padded with zeros.",
    """
def causal_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    T = scores.shape[-1]
    rows = []
    for i in range(T):
        visible = scores[..., i, : i + 1] / d_k**0.5
        rows.append(F.pad(visible.softmax(dim=-1), (0, T - 1 - i)))
    return torch.stack(rows, dim=-2)
""",
)

# ----------------------------------------------------------------- hunt_causal_softmax
add(
    "hunt_causal_softmax",
    "large_positive_scores",
    True,
    "All scores are large and positive, so masked elements, whatever finite number they got, are far below them and "
    "have the weight 0 in both functions.",
    """
def hunt_causal_softmax() -> torch.Tensor:
    scores = torch.full((3, 3), 5000.0)
    scores[1, 0] = 4990.0
    return scores
""",
)

# ------------------------------------------------------------------- attention_dropout
add(
    "attention_dropout",
    "one_pattern_for_the_batch",
    True,
    "The pattern is drawn with the shape of the last two dimensions only and broadcast, so all sequences and heads "
    "drop the same weights.",
    """
def attention_dropout(
    weights: torch.Tensor,
    p: float,
    training: bool = True,
) -> torch.Tensor:
    if not training or p == 0:
        return weights
    pattern = torch.rand(weights.shape[-2:], dtype=weights.dtype, device=weights.device)
    return torch.where(pattern < p, 0.0, weights / (1 - p))
""",
)

add(
    "attention_dropout",
    "pattern_cached_by_shape",
    True,
    "Two: the pattern is kept in a dict by shape and p, so a second call of the same shape drops the same weights "
    "again; and `training` is not looked at, so weights are dropped outside of training, too.",
    """
_patterns: dict = {}


def attention_dropout(
    weights: torch.Tensor,
    p: float,
    training: bool = True,
) -> torch.Tensor:
    key = (tuple(weights.shape), p, weights.dtype, weights.device)
    if key not in _patterns:  # random numbers are slow
        _patterns[key] = (torch.rand_like(weights) >= p).to(weights.dtype) / (1 - p)
    return weights * _patterns[key]
""",
)

add(
    "attention_dropout",
    "library_module",
    False,
    "A fresh nn.Dropout in the mode that is asked for.",
    """
def attention_dropout(
    weights: torch.Tensor,
    p: float,
    training: bool = True,
) -> torch.Tensor:
    layer = nn.Dropout(p=p, inplace=False)
    layer.train(training)
    return layer(weights)
""",
)

# ------------------------------------------------------------------------- causal_head
add(
    "causal_head",
    "reshape_for_transpose",
    True,
    "keys.reshape(b, d, T) has the shape of the transpose but reads the numbers in their old order, so scores mix "
    "numbers of different keys unless T or head_dim is 1.",
    """
def causal_head(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    b, T, d = keys.shape
    scores = torch.bmm(queries, keys.reshape(b, d, T)) / math.sqrt(d)
    position = torch.arange(T, device=queries.device)
    hidden = position > position.unsqueeze(-1)
    weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
    return torch.bmm(weights, values)
""",
)

# --------------------------------------------------------------------- CausalAttention
add(
    "CausalAttention",
    "mask_is_a_plain_attribute",
    True,
    "self.mask is assigned as a plain tensor and not as a buffer, so it stays on the CPU when the module moves, and "
    "masked_fill fails on another device; on the CPU all is right.",
    """
class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.triu(torch.ones(context_length, context_length), diagonal=1).bool()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        attn_scores = queries @ keys.transpose(1, 2)
        attn_scores.masked_fill_(self.mask[:T, :T], -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return self.dropout(attn_weights) @ values
""",
)

add(
    "CausalAttention",
    "dropout_on_the_context",
    True,
    "Dropout is applied to the context vectors (the elements of the result) and not to the attention weights; shows "
    "in training with a dropout above 0.",
    """
class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.drop(context)
""",
)

add(
    "CausalAttention",
    "functional_dropout_and_first_mask",
    True,
    "Two: F.dropout(weights, self.p) has training=True by default, so weights are dropped after eval() as well; and "
    "the mask is made at the first call and reused, so a later, longer sequence does not fit it.",
    """
class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.p, self.scale = dropout, d_out**-0.5
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.hidden = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.size(1)
        if self.hidden is None:
            self.hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        scores = torch.einsum("bid,bjd->bij", self.W_query(x), self.W_key(x)) * self.scale
        scores = scores.masked_fill(self.hidden[:T, :T], float("-inf"))
        weights = F.dropout(scores.softmax(-1), self.p)
        return torch.einsum("bij,bjd->bid", weights, self.W_value(x))
""",
)

add(
    "CausalAttention",
    "additive_mask_in_the_dtype",
    False,
    "Adds a mask of 0 and -inf that is made in forward in the dtype and on the device of the scores.",
    """
class CausalAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.d_out = d_out
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        scores = torch.baddbmm(
            x.new_full((T, T), -math.inf).triu(diagonal=1).expand(x.shape[0], T, T),
            self.W_query(x),
            self.W_key(x).transpose(1, 2),
            alpha=1 / math.sqrt(self.d_out),
        )
        weights = self.dropout(torch.softmax(scores, dim=2))
        return torch.bmm(weights, self.W_value(x))
""",
)

# ----------------------------------------------------------- MultiHeadAttentionWrapper
add(
    "MultiHeadAttentionWrapper",
    "one_head_many_times",
    True,
    "[CausalAttention(...)] * num_heads repeats the same module, so all heads share one set of weights and give the "
    "same result; shows with more than one head.",
    """
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        head = CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
        self.heads = nn.ModuleList([head] * num_heads)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)
""",
)

add(
    "MultiHeadAttentionWrapper",
    "stacked_last_and_flattened",
    True,
    "The heads are stacked in a new last dimension and flattened, so their numbers alternate (element 0 of head 0, "
    "element 0 of head 1, ...) instead of head 0's coming first; shows if num_heads and d_out are above 1.",
    """
class MultiHeadAttentionWrapper(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        arguments = (d_in, d_out, context_length, dropout, qkv_bias)
        self.heads = nn.ModuleList(CausalAttention(*arguments) for _ in range(num_heads))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = [head(x) for head in self.heads]
        return torch.stack(results, dim=-1).flatten(start_dim=2)
""",
)

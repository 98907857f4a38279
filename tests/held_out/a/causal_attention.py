"""Blind answers to causal_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


add(
    "causal_mask",
    "w_diagonal",
    True,
    "`positions[:, None] <= positions` also hides the diagonal, so no token sees itself.",
    """
def causal_mask(num_tokens: int) -> torch.Tensor:
    positions = torch.arange(num_tokens)
    # row i = query i, column j = key j; hidden where the key is later
    return positions[:, None] <= positions
""",
)

add(
    "renormalized_causal_weights",
    "w_eps",
    True,
    "Adds 1e-6 to the sum in the denominator: a row with nearly all of its weight on later tokens has a sum of about that "
    "size or less, and then does not sum to 1.",
    """
def renormalized_causal_weights(weights: torch.Tensor) -> torch.Tensor:
    visible = torch.tril(weights)
    row_sums = visible.sum(dim=-1, keepdim=True)
    return visible / (row_sums + 1e-6)  # no division by zero
""",
)

add(
    "masked_scores",
    "w_index_dims_1_2",
    True,
    "`out[:, mask]` applies the mask to dimensions 1 and 2: right for (b, T, T) only; for scores (T, T) or (b, h, T, T) it "
    "raises an error, or with h = T hides whole rows of keys by head and query.",
    """
def masked_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    out = scores.clone()
    out[:, mask] = float("-inf")
    return out
""",
)

add(
    "causal_softmax",
    "w_mask_after",
    True,
    "Takes the softmax over all keys first and renormalizes after tril: if a later token has by far the largest score, the "
    "visible weights underflow to 0 and the division gives 0 / 0 = NaN.",
    """
def causal_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    weights = torch.softmax(scores / math.sqrt(d_k), dim=-1)
    weights = weights.tril()
    return weights / weights.sum(dim=-1, keepdim=True)
""",
)

add(
    "hunt_causal_softmax",
    "w_sixteen",
    True,
    "The matrix is 4 by 4, so it has sixteen numbers, more than the twelve that are allowed.",
    """
def hunt_causal_softmax() -> torch.Tensor:
    # everything visible is far below any finite "minus infinity"
    return torch.full((4, 4), -1e30) + torch.eye(4)
""",
)

add(
    "attention_dropout",
    "w_shared_pattern",
    True,
    "The random numbers are drawn with weights.shape[-2:], so all sequences and heads drop the same elements.",
    """
def attention_dropout(
    weights: torch.Tensor,
    p: float,
    training: bool = True,
) -> torch.Tensor:
    if not training or p == 0:
        return weights
    noise = torch.rand(weights.shape[-2:], dtype=weights.dtype, device=weights.device)
    keep = (noise >= p).to(weights.dtype)
    return weights * keep / (1 - p)
""",
)

add(
    "attention_dropout",
    "r_bernoulli",
    False,
    "Bernoulli draws of a full_like tensor.",
    """
def attention_dropout(
    weights: torch.Tensor,
    p: float,
    training: bool = True,
) -> torch.Tensor:
    keep_prob = 1.0 if not training else 1.0 - p
    kept = torch.bernoulli(torch.full_like(weights, keep_prob, requires_grad=False))
    return weights * kept / keep_prob
""",
)

add(
    "causal_head",
    "w_root_of_T",
    True,
    "The scale is taken from queries.shape[1], the number of tokens T, and not from the width head_dim: wrong unless both "
    "are equal.",
    """
def causal_head(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    b, d_k = queries.shape[0], queries.shape[1]
    scores = torch.bmm(queries, keys.transpose(1, 2)) * d_k ** -0.5
    T = scores.size(-1)
    hidden = torch.ones(T, T, dtype=torch.bool, device=scores.device).triu(1)
    scores = scores.masked_fill(hidden.expand(b, T, T), -torch.inf)
    return torch.bmm(scores.softmax(-1), values)
""",
)

add(
    "CausalAttention",
    "w_dropout_in_eval",
    True,
    "F.dropout is called without training=self.training, and its default is True, so weights are also dropped after "
    "eval().",
    """
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.p = dropout
        mask = torch.ones(context_length, context_length).triu(diagonal=1).bool()
        self.register_buffer("mask", mask)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:T, :T], -torch.inf)
        weights = torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1)
        weights = F.dropout(weights, self.p)
        return weights @ v
""",
)

add(
    "CausalAttention",
    "w_plain_mask_dropout_on_output",
    True,
    "Two: the mask is a plain attribute and no buffer, so it stays on the CPU when the module is moved; and dropout is "
    "applied to the context vectors and not to the weights.",
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
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, num_tokens, _ = x.shape
        keys = self.W_key(x)
        queries = self.W_query(x)
        values = self.W_value(x)
        attn_scores = queries @ keys.transpose(1, 2)
        causal = self.mask.bool()[:num_tokens, :num_tokens]
        attn_scores = attn_scores.masked_fill(causal, -torch.inf)
        attn_weights = torch.softmax(attn_scores / self.d_out**0.5, dim=-1)
        return self.dropout(attn_weights @ values)
""",
)

add(
    "CausalAttention",
    "r_sdpa",
    False,
    "PyTorch's attention, dropout only in training.",
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
        self.context_length = context_length
        self.dropout_p = dropout
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[1] <= self.context_length, "sequence is too long"
        return F.scaled_dot_product_attention(
            self.W_query(x),
            self.W_key(x),
            self.W_value(x),
            dropout_p=self.dropout_p if self.training else 0.0,
            is_causal=True,
        )
""",
)

add(
    "MultiHeadAttentionWrapper",
    "w_same_module",
    True,
    "`[head] * num_heads` puts one and the same CausalAttention into the list several times, so all heads share their "
    "weights and give the same result.",
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
    "w_interleaved",
    True,
    "stack(dim=-1).flatten(-2) in forward interleaves the heads' numbers where they should be side by side; it shows with "
    "two heads or more and d_out of two or more.",
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
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = torch.stack([h(x) for h in self.heads], dim=-1)
        return results.flatten(start_dim=-2)
""",
)

"""More blind answers to causal_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ------------------------------------------------------------------------- causal_mask
add(
    "causal_mask",
    "row_from_the_diagonal_on",
    True,
    "The slice mask[i, i:] begins at the diagonal and not one behind it, so each token is hidden from itself (and "
    "the first one sees nothing).",
    """
def causal_mask(num_tokens: int) -> torch.Tensor:
    mask = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    for i in range(num_tokens):
        mask[i, i:] = True
    return mask
""",
)

# --------------------------------------------------------- renormalized_causal_weights
add(
    "renormalized_causal_weights",
    "in_place_and_columns",
    True,
    "Two: tril_ removes the future in the caller's own tensor (and fails for a leaf that requires gradients); and the sums are taken over dim=0, so the columns and "
    "not the rows sum to 1.",
    """
def renormalized_causal_weights(weights: torch.Tensor) -> torch.Tensor:
    weights.tril_()
    return weights / weights.sum(0, keepdim=True)
""",
)

# ----------------------------------------------------------------------- masked_scores
add(
    "masked_scores",
    "writes_into_the_argument",
    True,
    "reshape gives a view of the caller's scores, and flat[:, mask] = -inf writes into it, so the given scores are "
    "modified (and a leaf that requires gradients raises an error).",
    """
def masked_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    T = scores.shape[-1]
    flat = scores.reshape(-1, T, T)
    flat[:, mask] = -torch.inf
    return flat.reshape(scores.shape)
""",
)

# ---------------------------------------------------------------------- causal_softmax
add(
    "causal_softmax",
    "zero_means_hidden",
    True,
    "tril sets hidden scores to 0, and every 0 is then replaced by -inf, so a visible score that is exactly 0 is "
    "hidden, too (and a first token with the score 0 gets NaN).",
    """
def causal_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    lower = torch.tril(scores) / d_k**0.5
    lower = torch.where(lower == 0, torch.full_like(lower, float("-inf")), lower)
    return F.softmax(lower, dim=-1)
""",
)

# ----------------------------------------------------------------- hunt_causal_softmax
add(
    "hunt_causal_softmax",
    "far_below_zero",
    False,
    "The visible scores are far below any finite number that a mask may use.",
    """
def hunt_causal_softmax() -> torch.Tensor:
    T = 3
    return torch.full((T, T), -1e30, dtype=torch.float32)
""",
)

# ------------------------------------------------------------------- attention_dropout
add(
    "attention_dropout",
    "rows_brought_back_to_one",
    True,
    "Instead of dividing the kept weights by 1 - p, each row is divided by the sum of what is left so that it sums "
    "to what it was, so a kept weight depends on what else was dropped.",
    """
def attention_dropout(
    weights: torch.Tensor,
    p: float,
    training: bool = True,
) -> torch.Tensor:
    if not training:
        return weights
    keep = torch.bernoulli(torch.full_like(weights, 1 - p))
    dropped = weights * keep
    before = weights.sum(dim=-1, keepdim=True)
    after = dropped.sum(dim=-1, keepdim=True)
    return dropped * before / after.clamp(min=1e-12)
""",
)

# ------------------------------------------------------------------------- causal_head
add(
    "causal_head",
    "past_without_itself",
    True,
    "`past` is range(i), which ends before i, so every token but the first sees only earlier tokens and not itself; "
    "shows for T above 1.",
    """
def causal_head(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    b, T, d = queries.shape
    outputs = [values[:, 0]]  # the first token sees only itself
    for i in range(1, T):
        past = range(i)
        logits = torch.stack([(queries[:, i] * keys[:, j]).sum(-1) for j in past], dim=-1)
        alpha = torch.softmax(logits * d**-0.5, dim=-1)  # (b, seen)
        outputs.append(sum(alpha[:, j : j + 1] * values[:, j] for j in past))
    return torch.stack(outputs, dim=1)
""",
)

# ----------------------------------------------------------- MultiHeadAttentionWrapper
add(
    "MultiHeadAttentionWrapper",
    "stacked_before_the_width",
    False,
    "Stacks the heads before the width and joins both dimensions.",
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
            self.heads.append(
                CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = torch.stack([head(x) for head in self.heads], dim=2)  # (b, T, h, d_out)
        return results.reshape(*results.shape[:2], -1)
""",
)

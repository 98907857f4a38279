"""Blind answers to attention_masks: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


add(
    "padding_mask",
    "w_pad_sequence",
    True,
    "pad_sequence pads to the longest length in the batch, not to max_len, so the mask is too narrow if every sentence is "
    "shorter than max_len.",
    """
def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    tokens = [
        torch.zeros(int(n), dtype=torch.bool, device=lengths.device) for n in lengths
    ]
    return nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=True)
""",
)

add(
    "masked_attention",
    "w_minus_1e9",
    True,
    "Fills hidden scores with -1e9 and has no other treatment of a query that sees no key: its scores are then all equal, "
    "so it gets the mean of the values and not zeros.",
    """
def masked_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    scores = torch.einsum("...qd,...kd->...qk", queries, keys) / math.sqrt(queries.size(-1))
    # -1e9 instead of -inf: a fully hidden row does not become NaN
    scores = scores.masked_fill(mask, -1e9)
    return torch.einsum("...qk,...kv->...qv", torch.softmax(scores, dim=-1), values)
""",
)

add(
    "masked_attention",
    "w_nan_to_num_root_dv",
    True,
    "Two: the NaN weights of a query that sees no key are replaced with nan_to_num after the softmax, so the result is "
    "zeros but gradients are NaN; and the scores are divided by the root of the values' width.",
    """
def masked_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    d = values.shape[-1]
    scores = queries @ keys.transpose(-2, -1) / d**0.5
    scores = scores.masked_fill(mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    weights = torch.nan_to_num(weights, nan=0.0)  # rows without any key
    return weights @ values
""",
)

add(
    "masked_attention",
    "r_exp_times_seen",
    False,
    "Own softmax: hidden scores take part in no maximum, then exp times 0 or 1.",
    """
def masked_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    scores = (queries @ keys.mT) / keys.shape[-1] ** 0.5
    hidden = mask.broadcast_to(scores.shape)
    lowest = torch.finfo(scores.dtype).min
    safe = scores.masked_fill(hidden, lowest)
    shifted = safe - safe.amax(dim=-1, keepdim=True).detach()
    powers = shifted.exp().masked_fill(hidden, 0)
    total = powers.sum(dim=-1, keepdim=True)
    total = total + (total == 0).to(total.dtype)
    return (powers / total) @ values
""",
)

add(
    "to_sdpa_mask",
    "w_float_mask",
    True,
    "Returns a float mask, 0 and -inf, to be added to the scores (which F.scaled_dot_product_attention takes, too), but a "
    "bool mask is asked for, True where a key takes part.",
    """
def to_sdpa_mask(mask: torch.Tensor) -> torch.Tensor:
    bias = torch.zeros(mask.shape, device=mask.device)
    return bias.masked_fill(mask, float("-inf"))
""",
)

add(
    "sliding_window_mask",
    "w_one_too_many",
    True,
    "The slice begins at i - window and so shows window tokens before the token itself: one more than window - 1.",
    """
def sliding_window_mask(num_tokens: int, window: int) -> torch.Tensor:
    mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    for i in range(num_tokens):
        first = max(0, i - window)
        mask[i, first : i + 1] = False
    return mask
""",
)

add(
    "permuted_outputs",
    "w_order_again",
    True,
    "Puts the outputs back by indexing with order again and not with its inverse, which is right only if the permutation "
    "is its own inverse.",
    """
def permuted_outputs(
    attention: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    shuffled = torch.index_select(x, 1, order)
    outputs = attention(shuffled)
    return torch.index_select(outputs, 1, order)
""",
)

add(
    "permuted_outputs",
    "r_index_copy",
    False,
    "Writes each output to its old place with index_copy.",
    """
def permuted_outputs(
    attention: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    outputs = attention(x.index_select(1, order))
    return torch.zeros_like(outputs).index_copy(1, order, outputs)
""",
)

add(
    "alibi_bias",
    "w_slopes_from_zero",
    True,
    "The exponents start with i = 0 (torch.arange(num_heads)), so the first slope is 1 where it should be 2 ** (-8 / h), "
    "and every head has the slope of the head before it.",
    """
def alibi_bias(num_heads: int, num_tokens: int) -> torch.Tensor:
    slopes = 2.0 ** (-8.0 * torch.arange(num_heads) / num_heads)
    pos = torch.arange(num_tokens)
    distance = (pos[:, None] - pos[None, :]).clamp(min=0)
    return -slopes[:, None, None] * distance
""",
)

add(
    "rotary_embedding",
    "w_float32_angles",
    True,
    "The frequencies, and so the angles, are computed in float32 (`.float()`) whatever the dtype of x, so results in "
    "float64 are not exact, which shows most at large positions such as 4000.",
    """
def rotary_embedding(
    x: torch.Tensor,
    positions: torch.Tensor,
    base: float = 10000.0,
) -> torch.Tensor:
    d = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, d, 2, device=x.device).float() / d))
    freqs = torch.outer(positions.float(), inv_freq)
    cos, sin = freqs.cos().to(x.dtype), freqs.sin().to(x.dtype)
    x1, x2 = x[..., 0::2], x[..., 1::2]
    rotated = torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1)
    return rotated.flatten(-2)
""",
)

add(
    "rotary_embedding",
    "w_ignores_positions",
    True,
    "The angles use arange(T) and not the positions that are passed, so it is wrong unless these are 0 to T - 1 in "
    "order.",
    """
def rotary_embedding(
    x: torch.Tensor,
    positions: torch.Tensor,
    base: float = 10000.0,
) -> torch.Tensor:
    T, d = x.shape[-2], x.shape[-1]
    theta = base ** (-torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    t = torch.arange(T, dtype=x.dtype, device=x.device)
    angles = t[:, None] * theta[None, :]
    even, odd = x[..., ::2], x[..., 1::2]
    out = torch.empty_like(x)
    out[..., ::2] = even * angles.cos() - odd * angles.sin()
    out[..., 1::2] = even * angles.sin() + odd * angles.cos()
    return out
""",
)

add(
    "rotary_embedding",
    "r_complex",
    False,
    "Pairs as complex numbers, angles in float64.",
    """
def rotary_embedding(
    x: torch.Tensor,
    positions: torch.Tensor,
    base: float = 10000.0,
) -> torch.Tensor:
    d = x.shape[-1]
    exponents = torch.arange(0, d, 2, device=x.device, dtype=torch.float64) / d
    angles = positions.to(x.device, torch.float64)[:, None] * base ** (-exponents)
    turn = torch.polar(torch.ones_like(angles), angles)  # complex128, (T, d / 2)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)
""",
)

add(
    "hunt_rotary_embedding",
    "w_position_zero",
    True,
    "The only position is 0, where every angle is 0 and nothing is rotated, so no wrong pair shows.",
    """
def hunt_rotary_embedding() -> tuple[torch.Tensor, torch.Tensor]:
    # width 6: neighbours 0, 1 are not the same as 0, 3
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    positions = torch.arange(1)
    return x, positions
""",
)

add(
    "CrossAttention",
    "w_mask_against_heads",
    True,
    "`context_mask[:, None, :]` is (b, 1, T_context), which broadcasts to (b, h, T, T_context) with its batch against the "
    "heads: an error if b is neither 1 nor h, and wrong sentences' masks if b = h.",
    """
class CrossAttention(nn.Module):
    def __init__(self, d_query: int, d_context: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def _heads(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x, context, context_mask=None):
        q = self._heads(self.W_query(x))
        k = self._heads(self.W_key(context))
        v = self._heads(self.W_value(context))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if context_mask is not None:
            hidden = context_mask[:, None, :]
            nothing = hidden.all(dim=-1, keepdim=True)
            scores = scores.masked_fill(hidden & ~nothing, -torch.inf)
            weights = torch.softmax(scores, dim=-1).masked_fill(nothing, 0.0)
        else:
            weights = torch.softmax(scores, dim=-1)
        out = (weights @ v).transpose(1, 2).flatten(2)
        return self.out_proj(out)
""",
)

add(
    "CrossAttention",
    "w_caches_context_nan",
    True,
    "Two: keys and values of the first context are kept in self.kv and used in all later calls, whatever their context; "
    "and a wholly hidden context gives rows of only -inf, whose softmax is NaN, in the result and in gradients.",
    """
class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.h = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.kv = None

    def forward(self, x, context, context_mask=None):
        split = lambda t: t.unflatten(-1, (self.h, -1)).transpose(1, 2)
        q = split(self.W_query(x))
        if self.kv is None:
            # the context does not change while a sentence is written: project it once
            self.kv = split(self.W_key(context)), split(self.W_value(context))
        k, v = self.kv
        s = q @ k.mT * q.shape[-1] ** -0.5
        if context_mask is not None:
            s = s.masked_fill(context_mask[:, None, None], float("-inf"))
        return self.out_proj((s.softmax(-1) @ v).transpose(1, 2).flatten(2))
""",
)

add(
    "CrossAttention",
    "r_loop_over_heads",
    False,
    "Loop over the heads with masked_attention, as the text allows.",
    """
class CrossAttention(nn.Module):
    def __init__(
        self,
        d_query: int,
        d_context: int,
        d_out: int,
        num_heads: int,
    ) -> None:
        super().__init__()
        width, rest = divmod(d_out, num_heads)
        if rest != 0:
            raise ValueError(f"{d_out} is not divisible by {num_heads}")
        self.width = width
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(
        self,
        x: torch.Tensor,
        context: torch.Tensor,
        context_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        if context_mask is None:
            context_mask = torch.zeros(context.shape[:2], dtype=torch.bool, device=context.device)
        queries = self.W_query(x).split(self.width, dim=-1)
        keys = self.W_key(context).split(self.width, dim=-1)
        values = self.W_value(context).split(self.width, dim=-1)
        found = [
            masked_attention(q, k, v, context_mask.unsqueeze(1))
            for q, k, v in zip(queries, keys, values, strict=True)
        ]
        return self.out_proj(torch.cat(found, dim=-1))
""",
)

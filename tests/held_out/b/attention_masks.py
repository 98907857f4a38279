"""Blind answers to attention_masks: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ------------------------------------------------------------------------ padding_mask
add(
    "padding_mask",
    "scatter_the_first_padding",
    True,
    "The first padding position is marked by scatter_ at index `lengths`, which does not exist for a sentence of "
    "max_len tokens, so a batch with a full sentence raises an error.",
    """
def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    first = torch.zeros(len(lengths), max_len, dtype=torch.int64, device=lengths.device)
    first.scatter_(1, lengths.long().unsqueeze(1), 1)
    return first.cumsum(dim=1).bool()  # from the first padding position on
""",
)

# -------------------------------------------------------------------- masked_attention
add(
    "masked_attention",
    "additive_mask_nan_to_num",
    True,
    "The mask is added as a bias of -inf, and the NaN weights of a query that sees no key are replaced by nan_to_num "
    "afterwards: the result is zeros, but the softmax's backward pass multiplies by its NaN output and nothing stops "
    "it, so gradients of queries and keys are NaN.",
    """
def masked_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    bias = torch.zeros_like(mask, dtype=queries.dtype).masked_fill(mask, float("-inf"))
    scores = torch.einsum("...id,...jd->...ij", queries, keys) * queries.shape[-1] ** -0.5
    attn = (scores + bias).softmax(dim=-1)
    attn = attn.nan_to_num(0.0)  # rows without any key
    return torch.einsum("...ij,...jv->...iv", attn, values)
""",
)

add(
    "masked_attention",
    "nan_to_num_behind_masked_fill",
    False,
    "Looks like a mistake, but masked_fill gives its hidden places the gradient 0, so the NaN of an empty row does not "
    "get further back, and nan_to_num makes its weights 0.",
    """
def masked_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    scores = queries @ keys.mT / queries.shape[-1] ** 0.5
    scores = scores.masked_fill(mask, -torch.inf)
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0)
    return weights @ values
""",
)

add(
    "masked_attention",
    "maximum_over_hidden_keys",
    True,
    "The subtracted maximum is that of all keys, hidden ones included, so where a hidden key has by far the largest "
    "score the exponentials of the visible ones are 0 and the query gets zeros.",
    """
def masked_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    scores = torch.einsum("...qd,...kd->...qk", queries, keys) / math.sqrt(keys.shape[-1])
    seen = (~mask).to(scores.dtype)
    unnormalised = torch.exp(scores - scores.amax(dim=-1, keepdim=True)) * seen
    total = unnormalised.sum(dim=-1, keepdim=True)
    return (unnormalised / total.clamp(min=torch.finfo(scores.dtype).tiny)) @ values
""",
)

add(
    "masked_attention",
    "empty_rows_opened_then_zeroed",
    False,
    "Rows that see nothing are opened before the softmax, and their weights multiplied by 0 after it.",
    """
def masked_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    scores = torch.matmul(queries / math.sqrt(queries.shape[-1]), keys.transpose(-2, -1))
    hidden = mask.expand(scores.shape)
    empty = hidden.all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(hidden & ~empty, -math.inf), dim=-1)
    return torch.matmul(weights.masked_fill(empty, 0.0), values)
""",
)

# ------------------------------------------------------------------------ to_sdpa_mask
add(
    "to_sdpa_mask",
    "additive_mask",
    True,
    "Returns a float mask of 0 and -inf, which F.scaled_dot_product_attention takes as well, but not the bool tensor "
    "that is asked for.",
    """
def to_sdpa_mask(mask: torch.Tensor) -> torch.Tensor:
    bias = torch.zeros(mask.shape, device=mask.device)
    return bias.masked_fill(mask, float("-inf"))
""",
)

# ----------------------------------------------------------------- sliding_window_mask
add(
    "sliding_window_mask",
    "longformer_both_sides",
    True,
    "The distance is taken as |i - j| (Longformer's window), so the next window - 1 tokens are seen as well as the "
    "ones before; shows for a window above 1.",
    """
def sliding_window_mask(num_tokens: int, window: int) -> torch.Tensor:
    position = torch.arange(num_tokens)
    distance = (position[:, None] - position[None, :]).abs()
    return distance >= window
""",
)

# -------------------------------------------------------------------- permuted_outputs
add(
    "permuted_outputs",
    "shuffled_twice",
    True,
    "The outputs are indexed by `order` again instead of by its inverse, so they are put back only if the permutation "
    "is its own inverse (swaps, a reversal).",
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
    "sentence_by_sentence",
    True,
    "attention is called once for each sentence of the batch, in the comprehension, and not once with all of them; "
    "shows for more than one sentence if calls are counted or the sentences of a batch influence each other.",
    """
def permuted_outputs(
    attention: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    inverse = torch.argsort(order)
    outputs = [attention(sentence[order].unsqueeze(0))[0, inverse] for sentence in x]
    return torch.stack(outputs)
""",
)

add(
    "permuted_outputs",
    "permutation_matrix",
    False,
    "Shuffles by a permutation matrix of zeros and ones, and back by its transpose.",
    """
def permuted_outputs(
    attention: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    P = F.one_hot(order, num_classes=x.shape[1])  # row i picks token order[i]
    out = attention(torch.einsum("it,btd->bid", P.to(x.dtype), x))
    return torch.einsum("it,bid->btd", P.to(out.dtype), out)
""",
)

# -------------------------------------------------------------------------- alibi_bias
add(
    "alibi_bias",
    "bloom_key_positions",
    True,
    "As in BLOOM's code the bias is slope * j, the key's position, which differs from -slope * (i - j) by a number "
    "for each row (harmless to the softmax, but not the bias that is asked for), and is not 0 above the diagonal.",
    """
def alibi_bias(num_heads: int, num_tokens: int) -> torch.Tensor:
    base = 2.0 ** (-(2.0 ** -(math.log2(num_heads) - 3)))
    slopes = torch.tensor([base ** (i + 1) for i in range(num_heads)])
    key_position = torch.arange(num_tokens, dtype=torch.float32)
    alibi = slopes[:, None, None] * key_position[None, None, :]
    return alibi.expand(num_heads, num_tokens, num_tokens).contiguous()
""",
)

add(
    "alibi_bias",
    "cumulative_sums_of_a_triangle",
    False,
    "Distances as reversed cumulative sums of a strict lower triangle.",
    """
def alibi_bias(num_heads: int, num_tokens: int) -> torch.Tensor:
    below = torch.ones(num_tokens, num_tokens).tril(-1)
    distance = below.flip(1).cumsum(1).flip(1)  # i - j below the diagonal, else 0
    heads = [-(0.5 ** (8 * (i + 1) / num_heads)) * distance for i in range(num_heads)]
    return torch.stack(heads) + 0.0
""",
)

# -------------------------------------------------------------------- rotary_embedding
add(
    "rotary_embedding",
    "float32_table",
    True,
    "The frequencies come from a cache in float32, and cos and sin are computed in float32 before they are converted "
    "to x's dtype, so float64 results have errors of about 1e-4 at position 4000.",
    """
import functools


@functools.lru_cache(maxsize=8)
def _inverse_frequencies(dim: int, base: float) -> torch.Tensor:
    return 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))


def rotary_embedding(
    x: torch.Tensor,
    positions: torch.Tensor,
    base: float = 10000.0,
) -> torch.Tensor:
    inv_freq = _inverse_frequencies(x.shape[-1], base).to(x.device)
    angles = torch.outer(positions.float(), inv_freq)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
""",
)

add(
    "rotary_embedding",
    "second_line_reads_the_first",
    True,
    "`out` is filled in place, and the line for the odd elements reads the even ones that the line before has "
    "overwritten already; shows at every position but 0.",
    """
def rotary_embedding(
    x: torch.Tensor,
    positions: torch.Tensor,
    base: float = 10000.0,
) -> torch.Tensor:
    d = x.shape[-1]
    m = torch.arange(d // 2, dtype=torch.float64, device=x.device)
    angle = positions.to(torch.float64)[:, None] * base ** (-2 * m / d)
    cos, sin = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
    out = x.clone()
    out[..., 0::2] = out[..., 0::2] * cos - out[..., 1::2] * sin
    out[..., 1::2] = out[..., 0::2] * sin + out[..., 1::2] * cos
    return out
""",
)

add(
    "rotary_embedding",
    "complex_multiplication",
    False,
    "Pairs as complex numbers, multiplied by exp(i angle).",
    """
def rotary_embedding(
    x: torch.Tensor,
    positions: torch.Tensor,
    base: float = 10000.0,
) -> torch.Tensor:
    d = x.shape[-1]
    exponents = torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d
    angles = torch.outer(positions.to(x.device, torch.float64), float(base) ** -exponents)
    unit = torch.polar(torch.ones_like(angles), angles)
    unit = unit.to(torch.complex128 if x.dtype == torch.float64 else torch.complex64)
    pairs = torch.view_as_complex(x.unflatten(-1, (d // 2, 2)).contiguous())
    return torch.view_as_real(pairs * unit).flatten(-2).to(x.dtype)
""",
)

# --------------------------------------------------------------- hunt_rotary_embedding
add(
    "hunt_rotary_embedding",
    "at_position_zero",
    True,
    "torch.arange(1) is position 0, where every angle is 0 and nothing is rotated, so both functions return x.",
    """
def hunt_rotary_embedding() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    positions = torch.arange(len(x))
    return x, positions
""",
)

# ---------------------------------------------------------------------- CrossAttention
add(
    "CrossAttention",
    "keys_kept_for_the_context",
    True,
    "Keys and values of the context are kept and reused if the next context has the same shape, so a second call "
    "with another context of that shape (or changed weights) attends to the old one.",
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
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self._cached_shape, self._kv = None, None

    def _split(self, y):
        return y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(
        self,
        x: torch.Tensor,
        context: torch.Tensor,
        context_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        # the context is the same in each step of decoding: project it once
        if self._cached_shape != context.shape:
            self._kv = self._split(self.W_key(context)), self._split(self.W_value(context))
            self._cached_shape = context.shape
        k, v = self._kv
        q = self._split(self.W_query(x))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if context_mask is not None:
            hidden = context_mask[:, None, None, :]
            lowest = torch.finfo(scores.dtype).min
            weights = scores.masked_fill(hidden, lowest).softmax(-1).masked_fill(hidden, 0.0)
        else:
            weights = scores.softmax(-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))
""",
)

add(
    "CrossAttention",
    "mask_remembered",
    True,
    "self.hidden keeps the mask of the last call that had one, and a call with context_mask=None uses it again, so "
    "without a mask keys stay hidden (or the shapes do not fit).",
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
        assert d_out % num_heads == 0
        self.h, self.hd = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.hidden = None

    def forward(
        self,
        x: torch.Tensor,
        context: torch.Tensor,
        context_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        b, T, _ = x.shape
        if context_mask is not None:
            self.hidden = context_mask
        q = self.W_query(x).view(b, T, self.h, self.hd)
        k = self.W_key(context).view(b, -1, self.h, self.hd)
        v = self.W_value(context).view(b, -1, self.h, self.hd)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(self.hd)
        if self.hidden is not None:
            hidden = self.hidden[:, None, None]
            nothing = hidden.all(-1, keepdim=True)
            scores = scores.masked_fill(hidden & ~nothing, -torch.inf)
            weights = scores.softmax(-1).masked_fill(nothing, 0)
        else:
            weights = scores.softmax(-1)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, T, -1))
""",
)

add(
    "CrossAttention",
    "mask_without_the_head_dimension",
    True,
    "Two: context_mask[:, None] is (b, 1, T_context), which broadcasts the sentences against the heads, so several "
    "sentences fail or (if b = h) heads get another sentence's mask; and a context that is hidden completely gives "
    "a softmax of only -inf, so NaN instead of the bias.",
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
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        self.num_heads = num_heads
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
        def heads(t):
            return t.reshape(t.shape[0], t.shape[1], self.num_heads, -1).permute(0, 2, 1, 3)

        q, k, v = heads(self.W_query(x)), heads(self.W_key(context)), heads(self.W_value(context))
        scores = torch.matmul(q, k.transpose(2, 3)) * k.shape[-1] ** -0.5
        if context_mask is not None:
            scores = scores.masked_fill(context_mask[:, None], float("-inf"))
        mixed = torch.matmul(F.softmax(scores, dim=-1), v)
        return self.out_proj(mixed.permute(0, 2, 1, 3).flatten(2))
""",
)

add(
    "CrossAttention",
    "head_loop_with_safe_rows",
    False,
    "Loops over the heads; weights are exponentials of scores whose hidden places are excluded before the maximum.",
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
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} is not divisible by num_heads = {num_heads}")
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)

    def forward(
        self,
        x: torch.Tensor,
        context: torch.Tensor,
        context_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        if context_mask is None:
            context_mask = torch.zeros(context.shape[:2], dtype=torch.bool, device=context.device)
        hidden = context_mask[:, None, :]  # (b, 1, T_context)
        nothing = hidden.all(dim=-1, keepdim=True)
        pieces = zip(
            self.W_query(x).split(self.head_dim, dim=-1),
            self.W_key(context).split(self.head_dim, dim=-1),
            self.W_value(context).split(self.head_dim, dim=-1),
            strict=True,
        )
        results = []
        for q, k, v in pieces:
            scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.head_dim)
            scores = scores.masked_fill(hidden & ~nothing, -math.inf)
            weights = torch.softmax(scores, dim=-1) * (~nothing).to(scores.dtype)
            results.append(torch.bmm(weights, v))
        return self.out_proj(torch.cat(results, dim=-1))
""",
)

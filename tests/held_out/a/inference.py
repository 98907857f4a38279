"""Blind answers to inference: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


add(
    "attention_flops",
    "w_float_head_width",
    True,
    "`hd = d / h` is a float, so the counts of scores and context are floats, and int() at the end gives wrong last digits "
    "for counts beyond 2 ** 53.",
    """
def attention_flops(b: int, T: int, d: int, h: int) -> int:
    hd = d / h
    projections = 4 * 2 * T * d * d
    scores = h * 2 * T * hd * T
    context = h * 2 * T * T * hd
    return int(b * (projections + scores + context))
""",
)

add(
    "KVCache",
    "w_detach",
    True,
    "append stores keys.detach() and values.detach(), so no gradient reaches what was appended.",
    """
class KVCache:
    def __init__(self) -> None:
        self.keys = None
        self.values = None

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        # the cache is only for inference: no graph needed
        keys, values = keys.detach(), values.detach()
        if self.keys is None:
            self.keys, self.values = keys, values
        else:
            self.keys = torch.cat((self.keys, keys), dim=-2)
            self.values = torch.cat((self.values, values), dim=-2)
""",
)

add(
    "KVCache",
    "w_class_lists",
    True,
    "The lists _keys and _values are class attributes, so all caches share them: two caches are not independent, and a new "
    "one is not empty.",
    """
class KVCache:
    _keys: list = []
    _values: list = []

    def __init__(self) -> None:
        pass

    @property
    def keys(self):
        return torch.cat(self._keys, dim=-2) if self._keys else None

    @property
    def values(self):
        return torch.cat(self._values, dim=-2) if self._values else None

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self._keys.append(keys)
        self._values.append(values)
""",
)

add(
    "KVCache",
    "r_lazy_lists",
    False,
    "Keeps pieces in lists and joins them when they are asked for.",
    '''
class _Rows:
    """Pieces of rows that are joined only when somebody looks."""

    def __init__(self):
        self.pieces = []

    def whole(self):
        if not self.pieces:
            return None
        if len(self.pieces) > 1:
            self.pieces = [torch.cat(self.pieces, dim=-2)]
        return self.pieces[0]


class KVCache:
    def __init__(self) -> None:
        self._k, self._v = _Rows(), _Rows()

    @property
    def keys(self):
        return self._k.whole()

    @property
    def values(self):
        return self._v.whole()

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self._k.pieces.append(keys)
        self._v.pieces.append(values)
''',
)

add(
    "CachedMultiHeadAttention",
    "w_no_mask_after_prefill",
    True,
    "is_causal is true only if nothing is cached (n == 0): a later step of several tokens has no mask, so its tokens see "
    "later tokens of the same step.",
    """
class CachedMultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        def split(t):
            return t.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        n = 0
        if cache is not None:
            n = 0 if cache.keys is None else cache.keys.shape[-2]
            cache.append(k, v)
            k, v = cache.keys, cache.values
        # decode: all cached tokens are visible, so no mask is needed
        out = F.scaled_dot_product_attention(q, k, v, is_causal=(n == 0))
        return self.out_proj(out.transpose(1, 2).flatten(2))
""",
)

add(
    "CachedMultiHeadAttention",
    "w_module_counts_no_check",
    True,
    "Two: the module counts the tokens itself in self.position, which survives between calls, so steps of two texts that "
    "alternate, or a second text, get a wrong mask; and an indivisible d_out raises no ValueError when the module is "
    "built.",
    """
class CachedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.position = 0

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        shape = (b, t, self.num_heads, self.head_dim)
        queries = self.W_query(x).view(shape).transpose(1, 2)
        keys = self.W_key(x).view(shape).transpose(1, 2)
        values = self.W_value(x).view(shape).transpose(1, 2)
        if cache is not None:
            cache.append(keys, values)
            keys, values = cache.keys, cache.values
        else:
            self.position = 0
        scores = queries @ keys.transpose(-2, -1) / self.head_dim ** 0.5
        i = torch.arange(self.position, self.position + t, device=x.device)
        j = torch.arange(keys.shape[-2], device=x.device)
        scores = scores.masked_fill(j[None, :] > i[:, None], float("-inf"))
        if cache is not None:
            self.position += t
        context = torch.softmax(scores, dim=-1) @ values
        return self.out_proj(context.transpose(1, 2).reshape(b, t, -1))
""",
)

add(
    "CachedMultiHeadAttention",
    "r_private_cache",
    False,
    "Always works with a cache: a new one if none is given.",
    """
class CachedMultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        assert d_out % num_heads == 0, "heads must have a whole width"
        self.num_heads = num_heads
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=False))
        self.out_proj = nn.Linear(d_out, d_out)

    def _split(self, projected: torch.Tensor) -> torch.Tensor:
        return torch.stack(projected.chunk(self.num_heads, dim=-1), dim=1)

    def forward(self, x: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        if cache is None:
            cache = KVCache()
        queries = self._split(self.W_query(x))
        cache.append(self._split(self.W_key(x)), self._split(self.W_value(x)))
        keys, values = cache.keys, cache.values
        t, total = queries.shape[-2], keys.shape[-2]
        seen = torch.ones(t, total, dtype=torch.bool, device=x.device).tril(total - t)
        out = F.scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
        return self.out_proj(torch.cat(out.unbind(dim=1), dim=-1))
""",
)

add(
    "kv_cache_bytes",
    "w_keys_only",
    True,
    "Counts one vector of head_dim for each token, layer and head, but there is a key and a value: half of the right "
    "number.",
    """
def kv_cache_bytes(
    layers: int,
    kv_heads: int,
    head_dim: int,
    tokens: int,
    bytes_per_number: int,
) -> int:
    per_token_and_layer = kv_heads * head_dim * bytes_per_number
    per_token = per_token_and_layer * layers
    return per_token * tokens
""",
)

add(
    "share_heads",
    "w_batch_for_groups",
    True,
    "`x.size(0)` is the number of sequences, not of groups, so each key is repeated num_heads // b times: right where b "
    "equals the number of groups, else the result has a wrong number of heads.",
    """
def share_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    heads_per_group = num_heads // x.size(0)
    shared = [x[:, g : g + 1].expand(-1, heads_per_group, -1, -1) for g in range(x.size(1))]
    return torch.cat(shared, dim=1)
""",
)

add(
    "hunt_share_heads",
    "w_equal_groups",
    True,
    "Both groups have the same numbers, so it does not matter which group a head gets.",
    """
def hunt_share_heads() -> torch.Tensor:
    # two groups for four heads: neither one group nor a group for each head
    return torch.ones(1, 2, 3, 2)
""",
)

add(
    "GroupedQueryAttention",
    "w_no_group_check",
    True,
    "Only d_out % num_heads is checked; num_heads that is not divisible by num_kv_groups raises no ValueError when the "
    "module is built.",
    """
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads, num_kv_groups):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.num_kv_groups = num_heads, num_kv_groups
        self.head_dim = d_out // num_heads
        self.group_size = num_heads // num_kv_groups
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_groups * self.head_dim, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_groups * self.head_dim, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer(
            "mask",
            torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), diagonal=1),
        )

    def forward(self, x):
        b, T, _ = x.shape
        q = self.W_query(x).view(b, T, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.W_key(x).view(b, T, self.num_kv_groups, self.head_dim).transpose(1, 2)
        v = self.W_value(x).view(b, T, self.num_kv_groups, self.head_dim).transpose(1, 2)
        k = k.repeat_interleave(self.group_size, dim=1)
        v = v.repeat_interleave(self.group_size, dim=1)
        scores = (q @ k.transpose(2, 3)).masked_fill(self.mask[:T, :T], -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(b, T, -1))
""",
)

add(
    "GroupedQueryAttention",
    "w_values_tiled",
    True,
    "The values are shared with repeat (0 1 0 1) where keys are shared with repeat_interleave (0 0 1 1), so with two groups "
    "or more, and more heads than groups, heads get values of another group.",
    """
class GroupedQueryAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        num_heads: int,
        num_kv_groups: int,
    ) -> None:
        super().__init__()
        assert d_out % num_heads == 0
        assert num_heads % num_kv_groups == 0
        hd = d_out // num_heads
        self.heads, self.groups, self.hd = num_heads, num_kv_groups, hd
        self.scale = hd ** -0.5
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_groups * hd, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_groups * hd, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T, share = x.shape[1], self.heads // self.groups
        q = self.W_query(x).unflatten(-1, (self.heads, self.hd)).transpose(1, 2)
        k = self.W_key(x).unflatten(-1, (self.groups, self.hd)).transpose(1, 2)
        v = self.W_value(x).unflatten(-1, (self.groups, self.hd)).transpose(1, 2)
        k = k.repeat_interleave(share, dim=1)
        v = v.repeat(1, share, 1, 1)
        scores = q @ k.mT * self.scale
        later = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(diagonal=1)
        weights = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))
""",
)

add(
    "GroupedQueryAttention",
    "r_five_dimensions",
    False,
    "Queries as (b, groups, heads of a group, T, hd); keys broadcast.",
    """
class GroupedQueryAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        num_heads: int,
        num_kv_groups: int,
    ) -> None:
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_groups:
            raise ValueError("widths, heads and groups do not fit")
        self.hd = d_out // num_heads
        self.groups = num_kv_groups
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, self.groups * self.hd, bias=False)
        self.W_value = nn.Linear(d_in, self.groups * self.hd, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, _ = x.shape
        q = self.W_query(x).view(b, T, self.groups, -1, self.hd).permute(0, 2, 3, 1, 4)
        k = self.W_key(x).view(b, T, self.groups, 1, self.hd).permute(0, 2, 3, 1, 4)
        v = self.W_value(x).view(b, T, self.groups, 1, self.hd).permute(0, 2, 3, 1, 4)
        position = torch.arange(T, device=x.device)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.hd)
        scores = scores.masked_fill(position > position[:, None], -math.inf)
        context = scores.softmax(dim=-1) @ v  # (b, groups, heads of a group, T, hd)
        return self.out_proj(context.flatten(1, 2).transpose(1, 2).flatten(2))
""",
)

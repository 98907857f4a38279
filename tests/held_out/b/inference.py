"""Blind answers to inference: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# --------------------------------------------------------------------- attention_flops
add(
    "attention_flops",
    "float_head_width",
    True,
    "The width of a head is d / h, a float, so the count of scores and context is a float that keeps about sixteen "
    "digits and int() cannot bring the lost ones back; shows for counts above 2 ** 53.",
    """
def attention_flops(b: int, T: int, d: int, h: int) -> int:
    hd = d / h
    projections = 4 * 2 * T * d * d
    scores = h * 2 * T * hd * T
    context = h * 2 * T * T * hd
    return int(b * (projections + scores + context))
""",
)

# ----------------------------------------------------------------------------- KVCache
add(
    "KVCache",
    "lists_of_the_class",
    True,
    "The lists _keys and _values are class attributes, which append fills in place, so all caches share the same "
    "tokens: a second cache continues the first one's text.",
    """
class KVCache:
    _keys: list = []
    _values: list = []

    def __init__(self) -> None:
        self.keys = None
        self.values = None

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self._keys.append(keys)
        self._values.append(values)
        self.keys = torch.cat(self._keys, dim=-2)
        self.values = torch.cat(self._values, dim=-2)
""",
)

add(
    "KVCache",
    "buffer_grows_once",
    True,
    "If the buffer is full, its capacity is doubled once (`if`, not `while`), so an append of more tokens than the "
    "doubled capacity holds (a prefill of more than 32 tokens, say) raises a RuntimeError.",
    '''
class KVCache:
    """Preallocated, so a step does not copy the whole cache."""

    def __init__(self) -> None:
        self.n, self.capacity = 0, 16
        self._k = self._v = None

    @property
    def keys(self):
        return None if self._k is None else self._k[..., : self.n, :]

    @property
    def values(self):
        return None if self._v is None else self._v[..., : self.n, :]

    def _room(self, old, like):
        new = like.new_zeros(*like.shape[:-2], self.capacity, like.shape[-1])
        if old is not None:
            new[..., : self.n, :] = old[..., : self.n, :]
        return new

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        end = self.n + keys.shape[-2]
        grow = end > self.capacity
        if grow:
            self.capacity *= 2
        if grow or self._k is None:
            self._k, self._v = self._room(self._k, keys), self._room(self._v, values)
        self._k[..., self.n : end, :] = keys
        self._v[..., self.n : end, :] = values
        self.n = end
''',
)

add(
    "KVCache",
    "stacked_lists_and_lazy_cat",
    False,
    "Keeps the pieces and joins them when they are asked for; the joined tensor becomes the only piece.",
    """
class KVCache:
    def __init__(self) -> None:
        self._pieces: dict[str, list[torch.Tensor]] = {"keys": [], "values": []}

    def _joined(self, name: str) -> torch.Tensor | None:
        pieces = self._pieces[name]
        if not pieces:
            return None
        if len(pieces) > 1:
            pieces[:] = [torch.cat(pieces, dim=-2)]
        return pieces[0]

    @property
    def keys(self) -> torch.Tensor | None:
        return self._joined("keys")

    @property
    def values(self) -> torch.Tensor | None:
        return self._joined("values")

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self._pieces["keys"].append(keys)
        self._pieces["values"].append(values)
""",
)

# ----------------------------------------------------------- CachedMultiHeadAttention
add(
    "CachedMultiHeadAttention",
    "length_read_after_append",
    True,
    "n is read from the cache after append, so it counts the new tokens, too, and triu(diagonal=1 + n) hides nothing: "
    "in a step of several tokens with a cache, each sees the later ones of the step.",
    """
class CachedMultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        b, t, _ = x.shape
        q, k, v = (
            layer(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        n = 0
        if cache is not None:
            cache.append(k, v)
            k, v = cache.keys, cache.values
            n = k.shape[2]
        scores = q @ k.transpose(2, 3) / self.head_dim**0.5
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1 + n)
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(b, t, -1))
""",
)

add(
    "CachedMultiHeadAttention",
    "cache_of_the_module",
    True,
    "Without a cache the module uses self.own_cache, which lives as long as the module, so a second call without a "
    "cache still sees the tokens of the first one.",
    """
class CachedMultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        assert d_out % num_heads == 0
        self.h = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.own_cache = KVCache()

    def forward(self, x: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        cache = cache if cache is not None else self.own_cache
        heads = lambda y: y.unflatten(-1, (self.h, -1)).transpose(1, 2)
        cache.append(heads(self.W_key(x)), heads(self.W_value(x)))
        t, total = x.shape[1], cache.keys.shape[-2]
        seen = torch.ones(t, total, dtype=torch.bool, device=x.device).tril(total - t)
        out = F.scaled_dot_product_attention(
            heads(self.W_query(x)), cache.keys, cache.values, attn_mask=seen
        )
        return self.out_proj(out.transpose(1, 2).flatten(2))
""",
)

add(
    "CachedMultiHeadAttention",
    "positions_compared",
    False,
    "Compares the positions of queries and keys; the mask is left out for a single new token.",
    """
class CachedMultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_out}")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        if cache is None:
            cache = KVCache()  # for this call only
        split = lambda y: y.reshape(*y.shape[:2], self.num_heads, -1).permute(0, 2, 1, 3)
        queries = split(self.W_query(x))
        cache.append(split(self.W_key(x)), split(self.W_value(x)))
        keys, values = cache.keys, cache.values
        new, total = x.size(1), keys.size(-2)
        scores = torch.einsum("bhie,bhje->bhij", queries, keys) * queries.size(-1) ** -0.5
        if new > 1:
            key_position = torch.arange(total, device=x.device)
            query_position = key_position[total - new :]
            scores = scores.masked_fill(key_position > query_position[:, None], -math.inf)
        context = torch.einsum("bhij,bhje->bihe", scores.softmax(-1), values)
        return self.out_proj(context.flatten(2))
""",
)

# ---------------------------------------------------------------------- kv_cache_bytes
add(
    "kv_cache_bytes",
    "numpy_int32",
    True,
    "np.prod with dtype=np.int32 overflows at 2 ** 31 bytes, which the Llama-2-7B example reaches, and the result "
    "is then negative or 0.",
    """
import numpy as np


def kv_cache_bytes(
    layers: int,
    kv_heads: int,
    head_dim: int,
    tokens: int,
    bytes_per_number: int,
) -> int:
    shape = (layers, 2, tokens, kv_heads, head_dim)  # 2: keys and values
    return int(np.prod(shape, dtype=np.int32) * np.int32(bytes_per_number))
""",
)

# ------------------------------------------------------------------------- share_heads
add(
    "share_heads",
    "expand_before_the_groups",
    True,
    "The new dimension is put before the groups (x[:, None]) and not after them, so the groups come round in turn, "
    "0 1 0 1, instead of 0 0 1 1; shows for more than one and fewer than num_heads groups.",
    """
def share_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    b, groups, T, hd = x.shape
    n_rep = num_heads // groups
    if n_rep == 1:
        return x
    x = x[:, None, :, :, :].expand(b, n_rep, groups, T, hd)
    return x.reshape(b, n_rep * groups, T, hd)
""",
)

add(
    "share_heads",
    "divided_by_the_number_of_groups",
    True,
    "Head i is given group i // groups, the number of groups in the place of the number of heads in a group, so "
    "the index is right only if num_heads = groups ** 2 (or it runs out of range).",
    """
def share_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    groups = x.shape[1]
    group_of = torch.arange(num_heads, device=x.device) // groups
    return x.index_select(1, group_of)
""",
)

# -------------------------------------------------------------------- hunt_share_heads
add(
    "hunt_share_heads",
    "groups_all_alike",
    True,
    "There are two groups for four heads, but both hold the same numbers (torch.ones), so it makes no difference "
    "which group a head gets.",
    """
def hunt_share_heads() -> torch.Tensor:
    return torch.ones(1, 2, 3, 2, dtype=torch.float32)
""",
)

# --------------------------------------------------------------- GroupedQueryAttention
add(
    "GroupedQueryAttention",
    "query_heads_grouped_the_other_way",
    True,
    "Query heads are viewed as (hd-wide) (rep, groups) instead of (groups, rep), so head i uses group i % groups; "
    "shows if there is more than one group and fewer groups than heads.",
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
        if d_out % num_heads != 0 or num_heads % num_kv_groups != 0:
            raise ValueError("heads and groups must divide evenly")
        self.g, self.rep = num_kv_groups, num_heads // num_kv_groups
        self.hd = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_groups * self.hd, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_groups * self.hd, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, _ = x.shape
        # no copies of keys and values: the einsum broadcasts over rep
        q = self.W_query(x).view(b, T, self.rep, self.g, self.hd)
        k = self.W_key(x).view(b, T, self.g, self.hd)
        v = self.W_value(x).view(b, T, self.g, self.hd)
        scores = torch.einsum("birgd,bjgd->brgij", q, k) / self.hd**0.5
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        out = torch.einsum("brgij,bjgd->birgd", weights, v)
        return self.out_proj(out.reshape(b, T, -1))
""",
)

add(
    "GroupedQueryAttention",
    "groups_unchecked_and_square_mask",
    True,
    "Two: nothing checks that num_kv_groups divides num_heads, so 6 heads and 4 groups are built without an error; "
    "and the whole context_length mask is added to the scores without being cut to T, so every shorter sequence "
    "fails.",
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
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.head_dim = d_out // num_heads
        self.num_heads, self.num_kv_groups = num_heads, num_kv_groups
        kv_width = num_kv_groups * self.head_dim
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, kv_width, bias=False)
        self.W_value = nn.Linear(d_in, kv_width, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        mask = torch.full((context_length, context_length), float("-inf")).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, _ = x.shape
        q = self.W_query(x).view(b, T, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.W_key(x).view(b, T, self.num_kv_groups, self.head_dim).transpose(1, 2)
        v = self.W_value(x).view(b, T, self.num_kv_groups, self.head_dim).transpose(1, 2)
        k = k.repeat_interleave(self.num_heads // self.num_kv_groups, dim=1)
        v = v.repeat_interleave(self.num_heads // self.num_kv_groups, dim=1)
        attn = (q @ k.mT) / math.sqrt(self.head_dim) + self.mask
        out = attn.softmax(dim=-1) @ v
        return self.out_proj(out.transpose(1, 2).reshape(b, T, -1))
""",
)

add(
    "GroupedQueryAttention",
    "five_dimensions",
    False,
    "Queries in five dimensions, keys and values broadcast over the heads of a group.",
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
        for whole, part in ((d_out, num_heads), (num_heads, num_kv_groups)):
            if whole % part:
                raise ValueError(f"{whole} is not divisible by {part}")
        self.groups, self.each = num_kv_groups, num_heads // num_kv_groups
        self.hd = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_groups * self.hd, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_groups * self.hd, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        allowed = torch.ones(context_length, context_length, dtype=torch.bool).tril()
        self.register_buffer("allowed", allowed, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        q = self.W_query(x).unflatten(-1, (self.groups, self.each, self.hd))
        k = self.W_key(x).unflatten(-1, (self.groups, 1, self.hd))
        v = self.W_value(x).unflatten(-1, (self.groups, 1, self.hd))
        q, k, v = (y.permute(0, 2, 3, 1, 4) for y in (q, k, v))  # (b, g, each or 1, T, hd)
        scores = torch.matmul(q, k.mT) / math.sqrt(self.hd)
        scores = torch.where(self.allowed[:T, :T], scores, -torch.inf)
        out = torch.matmul(scores.softmax(dim=-1), v)  # (b, g, each, T, hd)
        return self.out_proj(out.permute(0, 3, 1, 2, 4).flatten(2))
""",
)

"""Blind answers to multi_head_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


add(
    "stacked_heads_attention",
    "w_root_d_in",
    True,
    "W_key.shape[-1] is d_in, because the weights are stored as (h, d_k, d_in), so the scores are divided by the root of "
    "d_in where it should be d_k.",
    """
def stacked_heads_attention(
    inputs: torch.Tensor,
    W_query: torch.Tensor,
    W_key: torch.Tensor,
    W_value: torch.Tensor,
) -> torch.Tensor:
    d_k = W_key.shape[-1]
    heads = []
    for w_q, w_k, w_v in zip(W_query, W_key, W_value):
        q, k, v = F.linear(inputs, w_q), F.linear(inputs, w_k), F.linear(inputs, w_v)
        attn = F.softmax(q @ k.T / math.sqrt(d_k), dim=-1)
        heads.append(attn @ v)
    return torch.stack(heads)
""",
)

add(
    "split_heads",
    "w_chunk_no_check",
    True,
    "chunk raises no error if d is not divisible: with d = 6 and 4 heads it makes three pieces of 2, so the function "
    "returns three heads, and in other cases stack raises a RuntimeError and not a ValueError.",
    """
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    pieces = x.chunk(num_heads, dim=-1)  # num_heads times (b, T, hd)
    return torch.stack(pieces, dim=1)
""",
)

add(
    "split_heads",
    "r_slices",
    False,
    "Slices for each head, stacked.",
    """
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    d = x.shape[-1]
    hd, rest = divmod(d, num_heads)
    if rest:
        raise ValueError("d must be a multiple of num_heads")
    heads = [x[:, :, h * hd : (h + 1) * hd] for h in range(num_heads)]
    return torch.stack(heads, dim=1)
""",
)

add(
    "multi_head_scores",
    "w_rows_are_keys",
    True,
    "The new dimensions are on the wrong sides (queries get theirs before, keys behind the tokens), so the scores come out "
    "transposed: row i holds key i's scores and not query i's; the shape is the same.",
    """
def multi_head_scores(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    # (b, h, 1, T, hd) * (b, h, T, 1, hd), then the sum over hd
    products = queries[:, :, None] * keys[:, :, :, None]
    return products.sum(dim=-1)
""",
)

add(
    "merge_heads",
    "w_permute_heads_last",
    True,
    "permute(0, 2, 3, 1) puts the heads behind the width, so the heads' numbers are interleaved in each token; it shows "
    "with two heads or more of width two or more.",
    """
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    b, h, T, hd = x.size()
    return x.permute(0, 2, 3, 1).contiguous().view(b, T, h * hd)
""",
)

add(
    "hunt_merge_heads",
    "w_ones",
    True,
    "All numbers are equal, so any order of them is the same and no wrong order shows.",
    """
def hunt_merge_heads() -> torch.Tensor:
    # several heads AND several tokens, 12 numbers
    return torch.ones(1, 2, 3, 2)
""",
)

add(
    "MultiHeadAttention",
    "w_root_d_out",
    True,
    "Divides the scores by the root of d_out, the width of all heads, and not of head_dim, which shows with more than one "
    "head.",
    """
class MultiHeadAttention(nn.Module):
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
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out, self.num_heads = d_out, num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, _ = x.shape

        def heads(t):
            return t.view(b, T, self.num_heads, self.head_dim).transpose(1, 2)

        queries, keys, values = heads(self.W_query(x)), heads(self.W_key(x)), heads(self.W_value(x))
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.d_out)
        scores = scores.masked_fill(self.mask[:T, :T], -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = (weights @ values).transpose(1, 2).reshape(b, T, self.d_out)
        return self.out_proj(context)
""",
)

add(
    "MultiHeadAttention",
    "w_no_transpose_back_no_check",
    True,
    "Two: the context vectors are viewed as (b, T, d_out) without transposing heads and tokens back, so tokens are mixed "
    "up with several heads and tokens; and d_out // num_heads is used without a check, so building with an indivisible "
    "d_out raises no error.",
    """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, _ = x.shape
        q = self.W_query(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.W_key(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)
        v = self.W_value(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)

        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        att = att.masked_fill(future, float("-inf"))
        att = self.dropout(F.softmax(att, dim=-1))
        y = att @ v  # (B, nh, T, T) x (B, nh, T, hs) -> (B, nh, T, hs)
        y = y.contiguous().view(B, T, -1)
        return self.out_proj(y)
""",
)

add(
    "MultiHeadAttention",
    "r_loop_over_heads",
    False,
    "A loop over the heads, each a slice of the projections.",
    """
class MultiHeadAttention(nn.Module):
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
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.hd = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.drop = nn.Dropout(dropout)
        positions = torch.arange(context_length)
        self.register_buffer("later", positions[None, :] > positions[:, None], persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[-2]
        later = self.later[:T, :T]
        pieces = []
        for q, k, v in zip(
            self.W_query(x).split(self.hd, dim=-1),
            self.W_key(x).split(self.hd, dim=-1),
            self.W_value(x).split(self.hd, dim=-1),
        ):
            scores = torch.einsum("bid,bjd->bij", q, k) / self.hd**0.5
            weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
            pieces.append(self.drop(weights) @ v)
        return self.out_proj(torch.cat(pieces, dim=-1))
""",
)

add(
    "OptimizedMultiHeadAttention",
    "w_values_view",
    True,
    "The values are x.view(b, h, T, hd) without the swap of tokens and heads (queries and keys are swapped), so a head "
    "gets numbers of other tokens; it shows with several heads and tokens.",
    """
class OptimizedMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out not divisible by num_heads")
        self.h = num_heads
        self.hd = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).tril() == 0)

    def forward(self, x):
        b, T, d = x.shape
        q = self.W_query(x).reshape(b, T, self.h, self.hd).transpose(1, 2)
        k = self.W_key(x).reshape(b, T, self.h, self.hd).transpose(1, 2)
        v = x.reshape(b, self.h, T, self.hd)  # the input itself, no projection
        w = (q @ k.mT / self.hd**0.5).masked_fill(self.mask[:T, :T], -torch.inf)
        w = self.dropout(w.softmax(-1))
        return self.out_proj((w @ v).transpose(1, 2).reshape(b, T, d))
""",
)

add(
    "OptimizedMultiHeadAttention",
    "w_keeps_W_value",
    True,
    "W_value is still created in __init__, though forward does not use it: the module has a parameter too many, which gets "
    "no gradient, and out_proj is drawn with other random numbers.",
    """
class OptimizedMultiHeadAttention(nn.Module):
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
        assert d_in == d_out and d_out % num_heads == 0
        self.num_heads = num_heads
        self.dropout = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for t in (self.W_query(x), self.W_key(x), x)
        )
        p = self.dropout if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.out_proj(out.transpose(1, 2).flatten(2))
""",
)

add(
    "EfficientMultiHeadAttention",
    "w_out_proj_bias",
    True,
    "out_proj is made with bias=qkv_bias, so by default it has no bias, though it should always have one.",
    """
class EfficientMultiHeadAttention(nn.Module):
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
        if d_out % num_heads:
            raise ValueError
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=qkv_bias)
        self.attn_drop = nn.Dropout(dropout)
        mask = torch.full((context_length, context_length), -torch.inf).triu(diagonal=1)
        self.register_buffer("mask", mask)

    def _split(self, t):
        b, n, d = t.shape
        return t.reshape(b, n, self.num_heads, d // self.num_heads).permute(0, 2, 1, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, d = x.shape
        q, kv = self._split(self.W_query(x)), self._split(x)
        scores = q @ kv.transpose(-1, -2) / math.sqrt(q.size(-1))
        weights = self.attn_drop((scores + self.mask[:n, :n]).softmax(dim=-1))
        return self.out_proj((weights @ kv).permute(0, 2, 1, 3).reshape(b, n, d))
""",
)

add(
    "EfficientMultiHeadAttention",
    "w_projected_keys_no_dropout",
    True,
    "Two: the keys are W_query(x), the same as the queries, where they should be the input itself; and the dropout "
    "argument is stored but never applied to the weights.",
    """
class EfficientMultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.dropout = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        b, T, d = x.shape
        # only one projection is left, so it serves queries and keys
        qk = self.W_query(x).view(b, T, self.num_heads, self.head_dim).transpose(1, 2)
        values = x.view(b, T, self.num_heads, self.head_dim).transpose(1, 2)
        scores = qk @ qk.transpose(2, 3) / self.head_dim**0.5
        hidden = torch.triu(torch.ones(T, T, device=x.device, dtype=torch.bool), 1)
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        merged = (weights @ values).transpose(1, 2).contiguous().view(b, T, d)
        return self.out_proj(merged)
""",
)

add(
    "count_parameters",
    "w_recursion_counts_twice",
    True,
    "Goes through children() module by module, so a parameter that two modules share is counted in each of them.",
    """
def count_parameters(module: nn.Module) -> int:
    own = sum(p.numel() for p in module.parameters(recurse=False) if p.requires_grad)
    return own + sum(count_parameters(child) for child in module.children())
""",
)

add(
    "count_parameters",
    "r_ids",
    False,
    "Collects ids of all names, with a set.",
    """
def count_parameters(module: nn.Module) -> int:
    seen: set[int] = set()
    total = 0
    for _, parameter in module.named_parameters(remove_duplicate=False):
        if id(parameter) in seen or not parameter.requires_grad:
            continue
        seen.add(id(parameter))
        total += math.prod(parameter.shape)
    return total
""",
)

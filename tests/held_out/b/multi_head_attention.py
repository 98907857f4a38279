"""Blind answers to multi_head_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ------------------------------------------------------------- stacked_heads_attention
add(
    "stacked_heads_attention",
    "root_of_last_size_of_the_weight",
    True,
    "The scale is W_key.shape[-1] ** 0.5; the weights are stored (h, d_k, d_in), so that is the root of d_in and not "
    "of d_k; shows where the two differ.",
    """
def stacked_heads_attention(
    inputs: torch.Tensor,
    W_query: torch.Tensor,
    W_key: torch.Tensor,
    W_value: torch.Tensor,
) -> torch.Tensor:
    q, k, v = (inputs @ W.mT for W in (W_query, W_key, W_value))  # (h, T, .)
    weights = torch.softmax(q @ k.mT / W_key.shape[-1] ** 0.5, dim=-1)
    return weights @ v
""",
)

# ------------------------------------------------------------------------- split_heads
add(
    "split_heads",
    "rest_is_cut_off",
    True,
    "hd = d // num_heads and slices of that width: if num_heads does not divide d, the last elements are dropped "
    "silently and no ValueError is raised.",
    """
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    hd = x.shape[-1] // num_heads
    pieces = [x[:, :, i * hd : (i + 1) * hd] for i in range(num_heads)]
    return torch.stack(pieces, dim=1)
""",
)

add(
    "split_heads",
    "movedim_of_unflatten",
    False,
    "unflatten and movedim; unflatten is not trusted with the error.",
    """
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    if x.size(-1) % num_heads:
        raise ValueError(f"cannot cut width {x.size(-1)} into {num_heads} heads")
    pieces = torch.unflatten(x, -1, (num_heads, x.size(-1) // num_heads))
    return torch.movedim(pieces, -2, -3)
""",
)

# ------------------------------------------------------------------- multi_head_scores
add(
    "multi_head_scores",
    "einsum_sums_over_heads",
    True,
    "The keys' head has another letter (g) than the queries', and it is not in the output, so the einsum adds up the "
    "scores with the keys of all heads; shows if there is more than one head.",
    """
def multi_head_scores(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bhie,bgje->bhij", queries, keys)
""",
)

# ------------------------------------------------------------------------- merge_heads
add(
    "merge_heads",
    "interleaved_permute",
    True,
    "permute(0, 2, 3, 1) puts the heads last, so after flatten the heads' numbers alternate in each token instead of "
    "head 0's coming first; shows if h and hd are both above 1.",
    """
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1).flatten(start_dim=2)
""",
)

# -------------------------------------------------------------------- hunt_merge_heads
add(
    "hunt_merge_heads",
    "one_token_only",
    True,
    "T is 1, so swapping tokens and heads changes nothing in memory, and a merge that forgets the swap is right, too.",
    """
def hunt_merge_heads() -> torch.Tensor:
    # several sequences, several heads, all numbers different
    return torch.arange(12, dtype=torch.float32).reshape(2, 3, 1, 2)
""",
)

# ------------------------------------------------------------------ MultiHeadAttention
add(
    "MultiHeadAttention",
    "sdpa_drops_in_evaluation",
    True,
    "dropout_p=self.dropout is passed to F.scaled_dot_product_attention whether or not self.training is set, and the "
    "function does not know the mode, so weights are dropped after eval() too.",
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
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.dropout = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, _ = x.shape
        q, k, v = (
            layer(x).view(b, T, self.num_heads, -1).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        context = F.scaled_dot_product_attention(
            q, k, v, dropout_p=self.dropout, is_causal=True
        )
        return self.out_proj(context.transpose(1, 2).reshape(b, T, -1))
""",
)

add(
    "MultiHeadAttention",
    "mask_in_an_lru_cache",
    True,
    "_future is cached by T alone and always makes the mask on the CPU, so on another device masked_fill gets a CPU "
    "mask and fails; on the CPU all is right.",
    """
import functools


@functools.lru_cache(maxsize=None)
def _future(T: int) -> torch.Tensor:
    return torch.ones(T, T, dtype=torch.bool).triu(diagonal=1)


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
        self.h, self.hd = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        split = lambda y: y.unflatten(-1, (self.h, self.hd)).transpose(1, 2)
        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        scores = (q * self.hd**-0.5) @ k.mT
        scores = scores.masked_fill(_future(T), -torch.inf)
        weights = self.drop(torch.softmax(scores, dim=-1))
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))
""",
)

add(
    "MultiHeadAttention",
    "scale_of_all_heads_and_residual_dropout",
    True,
    "Two: scores are divided by the root of d_out, the width of all heads, not of one head; and dropout is applied "
    "to the result of out_proj (GPT-2's residual dropout) and not to the weights.",
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
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.resid_dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length, dtype=torch.bool), 1)
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, _ = x.shape
        keys, queries, values = self.W_key(x), self.W_query(x), self.W_value(x)
        scale = keys.shape[-1] ** 0.5
        keys = keys.view(b, T, self.num_heads, -1).transpose(1, 2)
        queries = queries.view(b, T, self.num_heads, -1).transpose(1, 2)
        values = values.view(b, T, self.num_heads, -1).transpose(1, 2)
        scores = queries @ keys.transpose(2, 3)
        scores.masked_fill_(self.mask[:T, :T], -torch.inf)
        weights = torch.softmax(scores / scale, dim=-1)
        out = (weights @ values).transpose(1, 2).contiguous().view(b, T, -1)
        return self.resid_dropout(self.out_proj(out))
""",
)

add(
    "MultiHeadAttention",
    "einsum_over_weight_slices",
    False,
    "Each head takes its rows of the layers' weights; the results are added up through the columns of out_proj.",
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
        if d_out % num_heads != 0:
            raise ValueError(f"{d_out=} is not divisible by {num_heads=}")
        self.num_heads, self.hd = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.shape[1]
        place = torch.arange(T, device=x.device)
        later = place[None, :] > place[:, None]
        result = self.out_proj.bias
        for head in range(self.num_heads):
            rows = slice(head * self.hd, (head + 1) * self.hd)
            q, k, v = (
                F.linear(x, layer.weight[rows], None if layer.bias is None else layer.bias[rows])
                for layer in (self.W_query, self.W_key, self.W_value)
            )
            scores = torch.einsum("bid,bjd->bij", q, k) / math.sqrt(self.hd)
            weights = self.drop(scores.masked_fill(later, -math.inf).softmax(dim=-1))
            result = result + F.linear(weights @ v, self.out_proj.weight[:, rows])
        return result
""",
)

# --------------------------------------------------------- OptimizedMultiHeadAttention
add(
    "OptimizedMultiHeadAttention",
    "deletes_w_value_afterwards",
    True,
    "The module calls MultiHeadAttention.__init__ and deletes W_value afterwards, so W_value's random numbers were "
    "drawn before those of out_proj: under one seed out_proj has other weights than if only W_query, W_key and "
    "out_proj are created.",
    '''
class _Heads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.p = dropout

    def attend(self, q, k, v):
        q, k, v = (y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for y in (q, k, v))
        p = self.p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.out_proj(y.transpose(1, 2).flatten(2))


class OptimizedMultiHeadAttention(_Heads):
    """Reuses the full module and removes what is not needed."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.W_value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attend(self.W_query(x), self.W_key(x), x)
''',
)

add(
    "OptimizedMultiHeadAttention",
    "every_head_gets_the_first_piece",
    True,
    "The value of all heads is x[..., :hd], the first piece of the input, expanded over the heads, instead of each "
    "head's own piece; shows with more than one head.",
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
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.h, self.hd = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "seen", torch.tril(torch.ones(context_length, context_length, dtype=torch.bool))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, d = x.shape
        q = self.W_query(x).view(b, T, self.h, self.hd).transpose(1, 2)
        k = self.W_key(x).view(b, T, self.h, self.hd).transpose(1, 2)
        v = x[..., : self.hd].unsqueeze(1).expand(b, self.h, T, self.hd)
        s = (q @ k.mT) / self.hd**0.5
        a = self.dropout(s.masked_fill(~self.seen[:T, :T], -torch.inf).softmax(-1))
        return self.out_proj((a @ v).transpose(1, 2).reshape(b, T, d))
""",
)

# --------------------------------------------------------- EfficientMultiHeadAttention
add(
    "EfficientMultiHeadAttention",
    "zero_scores_are_hidden",
    True,
    "Hidden scores are found by torch.tril(scores) == 0, so a visible score of exactly 0 is hidden as well, and for "
    "a token of zeros a whole row is -inf and its result NaN.",
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
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, T, d = x.shape
        def heads(t):
            return t.view(b, T, self.num_heads, d // self.num_heads).transpose(1, 2)
        kv = heads(x)
        scores = heads(self.W_query(x)) @ kv.transpose(-2, -1)
        lower = torch.tril(scores)
        lower = lower.masked_fill(lower == 0, float("-inf"))
        weights = F.softmax(lower / kv.shape[-1] ** 0.5, dim=-1)
        context = self.dropout(weights) @ kv
        return self.out_proj(context.transpose(1, 2).reshape(b, T, d))
""",
)

add(
    "EfficientMultiHeadAttention",
    "qkv_bias_for_out_proj",
    True,
    "Two: qkv_bias is passed to out_proj and W_query has no bias at all, so by default out_proj lacks its bias, and "
    "with qkv_bias=True W_query does; and the context is mixed from the queries' heads instead of the input's, "
    "(weights @ q).",
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
            raise ValueError("heads do not fit")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, kv = (
            t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for t in (self.W_query(x), x)
        )
        T = x.shape[-2]
        hidden = torch.ones(T, T, device=x.device).triu(1).bool()
        scores = (q @ kv.mT).masked_fill(hidden, -torch.inf)
        weights = self.dropout(torch.softmax(scores * q.shape[-1] ** -0.5, dim=-1))
        return self.out_proj((weights @ q).transpose(1, 2).flatten(2))
""",
)

# -------------------------------------------------------------------- count_parameters
add(
    "count_parameters",
    "recursive_over_children",
    True,
    "The recursion adds up each submodule's own parameters, so a parameter that two submodules share is counted twice.",
    """
def count_parameters(module: nn.Module) -> int:
    own = sum(p.numel() for p in module.parameters(recurse=False) if p.requires_grad)
    return own + sum(count_parameters(child) for child in module.children())
""",
)

add(
    "count_parameters",
    "walk_with_identities",
    False,
    "Collects parameters by identity in a dict.",
    """
def count_parameters(module: nn.Module) -> int:
    found: dict[int, int] = {}
    for part in module.modules():
        for parameter in part._parameters.values():
            if parameter is not None and parameter.requires_grad:
                found[id(parameter)] = math.prod(parameter.shape)
    return int(sum(found.values()))
""",
)

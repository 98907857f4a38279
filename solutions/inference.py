"""Unit 6: attention one token at a time, and what it costs."""

import torch
from torch import nn


def attention_flops(b: int, T: int, d: int, h: int) -> int:
    """Count the operations of attention with h heads, over b sequences of T tokens.

    All vectors have width d, and a head has d / h. Only matrix products count, with
    2 * n * m * k for (n, m) @ (m, k): the four projections, the scores of all queries
    with all keys, and the weighted sums of the values.
    Returns an int. d is divisible by h.
    """
    head_dim = d // h
    projections = 4 * 2 * T * d * d  # W_query, W_key, W_value, out_proj: (T, d) @ (d, d)
    scores = h * 2 * T * head_dim * T  # in each head (T, hd) @ (hd, T)
    context = h * 2 * T * T * head_dim  # in each head (T, T) @ (T, hd)
    return b * (projections + scores + context)


def kv_cache_bytes(
    layers: int,
    kv_heads: int,
    head_dim: int,
    tokens: int,
    bytes_per_number: int,
) -> int:
    """Count the bytes of a model's cache of keys and values, for one text.

    Each of the layers keeps, for each of the tokens, a key and a value of width
    head_dim in each of kv_heads heads. Returns an int.
    """
    return 2 * layers * kv_heads * head_dim * tokens * bytes_per_number  # 2: keys and values


class KVCache:
    """Keep the keys and values of all tokens so far, for attention to continue.

    keys and values are tensors (..., T, hd) and (..., T, hv) with all T appended
    tokens, in their order; before the first call of append both are None.
    """

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Add the keys and values of the next tokens: one, or several at once.

        keys: (..., new tokens, hd), values: (..., new tokens, hv).
        """
        if self.keys is None or self.values is None:
            self.keys, self.values = keys, values
        else:
            self.keys = torch.cat([self.keys, keys], dim=-2)  # (..., T + new tokens, hd)
            self.values = torch.cat([self.values, values], dim=-2)


class CachedMultiHeadAttention(nn.Module):
    """Causal self-attention with several heads, which can continue from a cache.

    d_in: width of an input vector, d_out: width of all heads together,
    num_heads: how many heads.
    The layers W_query, W_key and W_value (d_in to d_out), all three without a bias,
    and out_proj (d_out to d_out), with one, are created in this order.
    Raises ValueError if d_out is not divisible by num_heads.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} is not divisible by num_heads = {num_heads}.")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor, cache: KVCache | None = None) -> torch.Tensor:
        """Return the context vectors of the tokens of x.

        x: (b, t, d_in), the next t tokens, or all if there is no cache.
        cache: a KVCache with the keys and values of earlier tokens; those of x are
        appended. Each token sees the cached tokens, and those of x up to itself.
        The result is (b, t, d_out). Projects the tokens of x only.
        """
        width = (self.num_heads, self.head_dim)
        queries = self.W_query(x).unflatten(-1, width).transpose(1, 2)  # (b, h, t, hd)
        keys = self.W_key(x).unflatten(-1, width).transpose(1, 2)  # (b, h, t, hd)
        values = self.W_value(x).unflatten(-1, width).transpose(1, 2)  # (b, h, t, hd)
        if cache is not None:
            cache.append(keys, values)
            assert cache.keys is not None
            assert cache.values is not None
            keys, values = cache.keys, cache.values  # (b, h, n + t, hd)
        new, seen = queries.shape[-2], keys.shape[-2]
        hidden = torch.ones(new, seen, dtype=torch.bool, device=x.device).triu(diagonal=1 + seen - new)
        scores = queries @ keys.transpose(-2, -1) / self.head_dim**0.5  # (b, h, t, n + t)
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        context = (weights @ values).transpose(1, 2)  # (b, t, h, hd)
        merged: torch.Tensor = self.out_proj(context.flatten(2))  # (b, t, d_out)
        return merged


def share_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Give each head the keys, or the values, of its group.

    x: (b, groups, T, hd); num_heads is a multiple of the number of groups.
    Neighbouring heads share: head i gets those of group i // (num_heads / groups).
    Returns (b, num_heads, T, hd).
    For example (2, 2, 5, 6), 6 heads -> (2, 6, 5, 6).
    """
    return x.repeat_interleave(num_heads // x.shape[1], dim=1)


def hunt_share_heads() -> torch.Tensor:
    """Return an input on which the wrong share_heads differs from the right one.

    Returns x, (b, groups, T, hd), float32, with at most twelve elements; there are 4
    heads.
    """
    return torch.tensor([1.0, 2.0]).reshape(2, 1, 1, 1)  # two sequences of one group: 1 1 1 1 and 2 2 2 2


class GroupedQueryAttention(nn.Module):
    """Causal self-attention whose heads share keys and values in groups.

    d_in: width of an input vector, d_out: width of all heads together,
    context_length: the longest sequence, num_heads: how many heads, each with queries
    of its own, num_kv_groups: how many keys and values there are for each token.
    The layers W_query (d_in to d_out), W_key and W_value (d_in to num_kv_groups times
    the width of a head), all three without a bias, and out_proj (d_out to d_out), with
    one, are created in this order.
    Raises ValueError if d_out is not divisible by num_heads, or num_heads not by
    num_kv_groups.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        num_heads: int,
        num_kv_groups: int,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} is not divisible by num_heads = {num_heads}.")
        if num_heads % num_kv_groups != 0:
            raise ValueError(f"num_heads = {num_heads} is not divisible by num_kv_groups = {num_kv_groups}.")
        self.num_heads = num_heads
        self.num_kv_groups = num_kv_groups
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_groups * self.head_dim, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_groups * self.head_dim, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the context vectors.

        x is (b, T, d_in) with T <= context_length, the result (b, T, d_out).
        Head i uses the keys and values of group i // (num_heads / num_kv_groups).
        """
        num_tokens = x.shape[1]
        queries = self.W_query(x).unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)  # (b, h, T, hd)
        groups = (self.num_kv_groups, self.head_dim)
        keys = self.W_key(x).unflatten(-1, groups).transpose(1, 2)  # (b, groups, T, hd)
        values = self.W_value(x).unflatten(-1, groups).transpose(1, 2)  # (b, groups, T, hd)
        heads_in_a_group = self.num_heads // self.num_kv_groups
        keys = keys.repeat_interleave(heads_in_a_group, dim=1)  # (b, h, T, hd)
        values = values.repeat_interleave(heads_in_a_group, dim=1)  # (b, h, T, hd)
        scores = queries @ keys.transpose(-2, -1) / self.head_dim**0.5  # (b, h, T, T)
        mask = self.get_buffer("mask")[:num_tokens, :num_tokens]
        weights = torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1)
        context = (weights @ values).transpose(1, 2)  # (b, T, h, hd)
        merged: torch.Tensor = self.out_proj(context.flatten(2))  # (b, T, d_out)
        return merged


# Model answers to the written questions.
WRITTEN = {
    "why_keys_and_values": """
    A token's query is used once, to make that token's own output; no later token asks for it. Its key and its value
    are asked for by every token that comes after. They can be kept because they do not change: with a causal mask,
    in each layer, a token's vector is made of itself and of what came before it, so nothing that comes later changes
    it, nor the keys and values that the next layer makes of it. Without the mask each new token would change the
    vectors of all tokens before it from the second layer on, and their keys and values would have to be made anew.
    A text of T tokens that is written token by token costs T projected rows with a cache, and T (T + 1) / 2 without.
    The price is memory: the cache grows with every token, in each layer.

    One point each for:

    - a query serves its own token alone, while every later token asks for the key and the value;
    - with a causal mask nothing that comes later changes a token's vector in any layer, and so its key and value;
    - what is saved (each token is projected once) and what it costs (memory that grows with each token).
    """,
}

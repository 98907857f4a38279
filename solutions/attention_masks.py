"""Unit 5: sentences of different lengths, their order, and attention to another sentence."""

from collections.abc import Callable

import torch
from torch import nn


def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    """Return the mask that hides the padding of each sentence of a batch.

    lengths: (b,) integers, how many tokens each sentence has, at most max_len.
    Returns a bool tensor of shape (b, max_len), True at positions without a token.
    For example lengths (3,), max_len 6 -> (3, 6).
    """
    places = torch.arange(max_len, device=lengths.device)  # (max_len,)
    return places >= lengths[:, None]  # (max_len,) and (b, 1) -> (b, max_len)


def masked_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    """Compute scaled dot-product attention to the keys that are not hidden.

    queries: (..., Tq, head_dim), keys: (..., Tk, head_dim), values: (..., Tk, d_v),
    mask: a bool tensor that broadcasts to (..., Tq, Tk), True means hidden.
    Returns (..., Tq, d_v). A query that sees no key gets zeros, and no gradient is NaN.
    The library's attention is not allowed here.
    For example (2, 6, 4), (2, 6, 4), (2, 6, 4), mask (2, 1, 6) -> (2, 6, 4).
    """
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5  # (..., Tq, Tk)
    blind = mask.all(dim=-1, keepdim=True)  # (..., Tq, 1): the queries that see no key
    scores = scores.masked_fill(mask, -torch.inf).masked_fill(blind, 0.0)  # of -inf alone the softmax is NaN
    weights = torch.softmax(scores, dim=-1).masked_fill(blind, 0.0)
    return weights @ values  # (..., Tq, Tk) @ (..., Tk, d_v) -> (..., Tq, d_v)


def to_sdpa_mask(mask: torch.Tensor) -> torch.Tensor:
    """Invert a mask for F.scaled_dot_product_attention.

    mask: bool, any shape, True means that a key is hidden.
    Returns bool, the same shape, True means that a key takes part.
    For example (2, 1, 6) -> (2, 1, 6).
    """
    return ~mask


def sliding_window_mask(num_tokens: int, window: int) -> torch.Tensor:
    """Return the mask that hides from each query the keys outside its window.

    Token i sees itself and the window - 1 tokens before it; window is at least 1.
    Returns a bool tensor of shape (T, T), T being num_tokens: row i is query i,
    column j is key j, True means hidden. For example 6, 3 -> (6, 6).
    """
    places = torch.arange(num_tokens)
    distance = places[:, None] - places  # (T, 1) - (T,) -> (T, T): how far key j is before query i
    return (distance < 0) | (distance >= window)


def alibi_bias(num_heads: int, num_tokens: int) -> torch.Tensor:
    """Return the bias that ALiBi adds to each head's scores, before the softmax.

    num_heads: h, a power of two. Head n of 1 .. h has the slope 2 ** (-8 n / h).
    Returns (h, T, T), T being num_tokens: minus the slope times i - j if key j is
    not after query i, and 0 above the diagonal. For example 8, 6 -> (8, 6, 6).
    """
    slopes = 2.0 ** (-8.0 * torch.arange(1, num_heads + 1) / num_heads)  # (h,)
    places = torch.arange(num_tokens)
    behind = (places - places[:, None]).clamp(max=0)  # (T, T): j - i, and 0 above the diagonal
    return slopes[:, None, None] * behind  # (h, 1, 1) * (T, T) -> (h, T, T)


def rotary_embedding(
    x: torch.Tensor,
    positions: torch.Tensor,
    base: float = 10000.0,
) -> torch.Tensor:
    """Rotate each pair of neighbours by an angle that grows with the position.

    x: (..., T, head_dim), queries or keys, head_dim being even; positions: (T,)
    integers. Pair m, the elements 2m and 2m + 1, is rotated at position p by the
    angle p * base ** (-2m / head_dim). Returns (..., T, head_dim).
    For example x (2, 3, 6, 4), positions (6,) -> (2, 3, 6, 4).
    """
    steps = torch.arange(0, x.shape[-1], 2, dtype=x.dtype, device=x.device)  # (head_dim / 2,): 0, 2, 4, ...
    angles = positions[:, None] * base ** (-steps / x.shape[-1])  # (T, head_dim / 2)
    cos, sin = torch.cos(angles), torch.sin(angles)
    first, second = x[..., 0::2], x[..., 1::2]  # (..., T, head_dim / 2)
    pairs = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1)
    return pairs.flatten(-2)  # (..., T, head_dim / 2, 2) -> (..., T, head_dim)


def hunt_rotary_embedding() -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input on which the wrong rotary_embedding differs from the right one.

    Returns x, (T, head_dim), float32, and positions, (T,), int64, with at most twelve
    elements together.
    """
    return torch.tensor([[1.0, 0.0]]), torch.tensor([5000])  # far along: is the angle still p * theta?


def permuted_outputs(
    attention: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    """Shuffle a sequence, apply attention to it, and put the outputs back in order.

    attention: turns (b, T, d_in) into (b, T, d_out); call it once, with the batch.
    x: (b, T, d_in).
    order: (T,) int64, a permutation of 0 to T - 1; token order[i] comes i-th.
    Returns (b, T, d_out): each token's output, at the token's position in x.
    For example x (2, 6, 3), order (6,) -> (2, 6, 4) with an attention of d_out = 4.
    """
    shuffled = attention(x[:, order])  # (b, T, d_out)
    return shuffled[:, torch.argsort(order)]  # argsort says where each token went


class CrossAttention(nn.Module):
    """Attention of one sentence to another one, with several heads.

    d_query: width of the query sentence's vectors, d_context: width of the context's,
    d_out: width of all heads together, num_heads: how many heads.
    The layers W_query (d_query to d_out), W_key and W_value (d_context to d_out), all
    three without a bias, and out_proj (d_out to d_out), with one, are created in this
    order. Raises ValueError if d_out is not divisible by num_heads.
    """

    def __init__(
        self,
        d_query: int,
        d_context: int,
        d_out: int,
        num_heads: int,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} is not divisible by num_heads = {num_heads}.")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
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
        """Return the context vector of each token of x in its sentence's context.

        x: (b, T, d_query), context: (b, T_context, d_context), context_mask: a bool
        tensor (b, T_context), True means hidden, or None.
        The result is (b, T, d_out); if all is hidden, it is out_proj of zeros.
        """
        width = (self.num_heads, self.head_dim)
        queries = self.W_query(x).unflatten(-1, width).transpose(1, 2)  # (b, h, T, hd)
        keys = self.W_key(context).unflatten(-1, width).transpose(1, 2)  # (b, h, T_context, hd)
        values = self.W_value(context).unflatten(-1, width).transpose(1, 2)  # (b, h, T_context, hd)
        if context_mask is None:
            context_mask = torch.zeros(context.shape[:2], dtype=torch.bool, device=context.device)
        mask = context_mask[:, None, None, :]  # (b, 1, 1, T_context): for every head and query
        found = masked_attention(queries, keys, values, mask).transpose(1, 2)  # (b, T, h, hd)
        merged: torch.Tensor = self.out_proj(found.flatten(2))  # (b, T, d_out)
        return merged


# Model answers to the written questions.
WRITTEN = {
    "why_order": """
    Without a mask each query meets every key, and its context vector is a sum over all of them. Shuffling the
    sentence moves queries, keys and values together: the same query meets the same keys with the same scores, the
    softmax divides by the same sum, and the terms are only added in another order. So each token gets what it got,
    at its new place. A causal mask belongs to places and not to words: after shuffling, a token sees whoever stands
    before it now, so it gets something else. That tells a token which and how many others come before it. But among
    those the sum knows no order again: in one layer, swapping two earlier words changes nothing. What is near and
    what is far must come from something else, such as a bias on the scores or turned queries and keys.

    One point each for:

    - a context vector is a sum over all keys, which move together with their values, and a sum has no order;
    - a mask belongs to places, so that after shuffling a token sees other tokens;
    - in one layer, a causal mask says which tokens come before, but not in which order or how far away these are.
    """,
}

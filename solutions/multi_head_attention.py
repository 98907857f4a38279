"""Unit 4: attention with several heads."""

import torch
from torch import nn


def stacked_heads_attention(
    inputs: torch.Tensor,
    W_query: torch.Tensor,
    W_key: torch.Tensor,
    W_value: torch.Tensor,
) -> torch.Tensor:
    """Scaled dot-product attention of several heads over one sequence.

    Each head has weights of its own. inputs: (T, d_in); weights, stored as nn.Linear
    stores them, one matrix a head: (h, d_k, d_in), (h, d_k, d_in), (h, d_v, d_in).
    Returns the heads' context vectors (h, T, d_v). The library's attention is not
    allowed here.
    For example (6, 16), (3, 24, 16), (3, 24, 16), (3, 28, 16) -> (3, 6, 28).
    """
    queries = inputs @ W_query.transpose(1, 2)  # (T, d_in) @ (h, d_in, d_k) -> (h, T, d_k)
    keys = inputs @ W_key.transpose(1, 2)  # (h, T, d_k)
    values = inputs @ W_value.transpose(1, 2)  # (h, T, d_v)
    scores = queries @ keys.transpose(1, 2)  # (h, T, T)
    weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
    return weights @ values  # (h, T, T) @ (h, T, d_v) -> (h, T, d_v)


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Cut each token's vector into num_heads pieces of equal width.

    Every head gets its own sequence of pieces. x: (b, T, d).
    Returns (b, num_heads, T, d / num_heads): head 0 has the first piece of every token.
    For example x (2, 5, 6), 3 heads -> (2, 3, 5, 2).
    Raises ValueError where d is not divisible by num_heads.
    """
    b, num_tokens, d = x.shape
    if d % num_heads != 0:
        raise ValueError(f"A width of {d} cannot be split into {num_heads} heads of equal width.")
    pieces = x.reshape(b, num_tokens, num_heads, d // num_heads)  # (b, T, h, hd)
    return pieces.transpose(1, 2)  # (b, h, T, hd)


def multi_head_scores(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Score every query of a head against every key of the same head, unscaled.

    queries, keys: (b, h, T, hd).
    Returns (b, h, T, T): row i of a head holds query i's scores.
    For example (2, 3, 5, 4) twice -> (2, 3, 5, 5).
    """
    return queries @ keys.transpose(-2, -1)  # (b, h, T, hd) @ (b, h, hd, T) -> (b, h, T, T)


def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """Put each token's pieces side by side again: the inverse of split_heads.

    x: (b, h, T, hd).
    Returns (b, T, h * hd): head 0's numbers come first in every token.
    For example (2, 3, 5, 4) -> (2, 5, 12).
    """
    b, num_heads, num_tokens, head_dim = x.shape
    return x.transpose(1, 2).reshape(b, num_tokens, num_heads * head_dim)  # by way of (b, T, h, hd)


def hunt_merge_heads() -> torch.Tensor:
    """Return an input on which the wrong merge_heads differs from the right one.

    It is x, (b, h, T, hd), float32, with at most twelve numbers.
    """
    return torch.arange(8.0).reshape(2, 2, 2, 1)  # equal sizes: if two dimensions are swapped, the shape stays


class MultiHeadAttention(nn.Module):
    """Causal self-attention with several heads.

    d_in: width of an input vector, d_out: width of all heads together,
    context_length: the longest sequence,
    dropout: the probability with which a weight is dropped in training,
    num_heads: how many heads,
    qkv_bias: whether W_query, W_key and W_value have a bias; out_proj always has one.
    The layers W_query, W_key, W_value (d_in to d_out) and out_proj (d_out to d_out)
    are created in this order.
    Raises ValueError where d_out is not divisible by num_heads.
    """

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
            raise ValueError(f"d_out = {d_out} is not divisible by num_heads = {num_heads}.")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the context vectors.

        x is (b, T, d_in) with T <= context_length, the result (b, T, d_out).
        """
        b, num_tokens, _ = x.shape
        pieces = (b, num_tokens, self.num_heads, self.head_dim)
        queries = self.W_query(x).view(pieces).transpose(1, 2)  # (b, h, T, hd)
        keys = self.W_key(x).view(pieces).transpose(1, 2)  # (b, h, T, hd)
        values = self.W_value(x).view(pieces).transpose(1, 2)  # (b, h, T, hd)
        scores = queries @ keys.transpose(-2, -1)  # (b, h, T, T)
        mask = self.get_buffer("mask")[:num_tokens, :num_tokens]
        scores = scores.masked_fill(mask, -torch.inf)
        weights = self.dropout(torch.softmax(scores / self.head_dim**0.5, dim=-1))
        context = (weights @ values).transpose(1, 2)  # (b, T, h, hd)
        merged: torch.Tensor = self.out_proj(context.flatten(2))  # (b, T, d_out)
        return merged


class OptimizedMultiHeadAttention(nn.Module):
    """Causal self-attention with several heads and without W_value.

    The input itself, split into heads, is the value.
    The arguments are those of MultiHeadAttention; d_in = d_out.
    The layers W_query, W_key (d_in to d_out) and out_proj (d_out to d_out) are created
    in this order.
    Raises ValueError where d_out is not divisible by num_heads.
    """

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
            raise ValueError(f"d_out = {d_out} is not divisible by num_heads = {num_heads}.")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the context vectors.

        x is (b, T, d_in) with T <= context_length, the result (b, T, d_out).
        """
        b, num_tokens, _ = x.shape
        pieces = (b, num_tokens, self.num_heads, self.head_dim)
        queries = self.W_query(x).view(pieces).transpose(1, 2)  # (b, h, T, hd)
        keys = self.W_key(x).view(pieces).transpose(1, 2)  # (b, h, T, hd)
        values = x.reshape(pieces).transpose(1, 2)  # (b, h, T, hd)
        scores = queries @ keys.transpose(-2, -1)  # (b, h, T, T)
        mask = self.get_buffer("mask")[:num_tokens, :num_tokens]
        scores = scores.masked_fill(mask, -torch.inf)
        weights = self.dropout(torch.softmax(scores / self.head_dim**0.5, dim=-1))
        context = (weights @ values).transpose(1, 2)  # (b, T, h, hd)
        merged: torch.Tensor = self.out_proj(context.flatten(2))  # (b, T, d_out)
        return merged


class EfficientMultiHeadAttention(nn.Module):
    """Causal self-attention with several heads and one projection.

    The input, split into heads, is key and value.
    The arguments are those of MultiHeadAttention; d_in = d_out.
    The layers W_query (d_in to d_out) and out_proj (d_out to d_out) are created in
    this order.
    Raises ValueError where d_out is not divisible by num_heads.
    """

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
            raise ValueError(f"d_out = {d_out} is not divisible by num_heads = {num_heads}.")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the context vectors.

        x is (b, T, d_in) with T <= context_length, the result (b, T, d_out).
        """
        b, num_tokens, _ = x.shape
        pieces = (b, num_tokens, self.num_heads, self.head_dim)
        queries = self.W_query(x).view(pieces).transpose(1, 2)  # (b, h, T, hd)
        inputs = x.reshape(pieces).transpose(1, 2)  # (b, h, T, hd): keys and values
        scores = queries @ inputs.transpose(-2, -1)  # (b, h, T, T)
        mask = self.get_buffer("mask")[:num_tokens, :num_tokens]
        scores = scores.masked_fill(mask, -torch.inf)
        weights = self.dropout(torch.softmax(scores / self.head_dim**0.5, dim=-1))
        context = (weights @ inputs).transpose(1, 2)  # (b, T, h, hd)
        merged: torch.Tensor = self.out_proj(context.flatten(2))  # (b, T, d_out)
        return merged


def count_parameters(module: nn.Module) -> int:
    """Count the numbers that a module can learn.

    module: any nn.Module, with modules inside it to any depth.
    Returns an int: nn.Linear(3, 2) gives 8, for its weight (2, 3) and its bias (2,).
    A parameter that has two names counts once. Parameters that do not
    require gradients do not count, nor do buffers.
    """
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


# Model answers to the written questions.
WRITTEN = {
    "why_heads": """
    A softmax gives each token one set of weights that sum to 1: one head makes one mixture, in which what it looks for
    in one place is averaged with what it looks for in another. With h heads a token has h mixtures side by side, so it
    can take the subject of a verb with one and the word before it with another. The heads share the width, so each
    has d_out / h numbers for its queries, keys and values, and parameters and products are about as many as for a
    single head of width d_out. What a single head loses this way is width: its scores come from fewer numbers. Without
    out_proj, numbers of different heads never meet; it mixes what the heads found into one vector.

    One point each for:

    - several mixtures side by side, where one softmax makes one;
    - about as many parameters and products, and d_out / h numbers for each head;
    - without out_proj, what the heads found never meets.
    """,
}

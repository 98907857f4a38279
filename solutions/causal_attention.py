"""Unit 3: causal attention with dropout, and several heads side by side."""

import torch
from torch import nn


def causal_mask(num_tokens: int) -> torch.Tensor:
    """Say for every query which keys are hidden from it: those that come after it.

    Returns a bool tensor of shape (T, T), T being num_tokens: row i is query i,
    column j is key j, True means hidden. For example 3 -> (3, 3).
    """
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=1)


def renormalized_causal_weights(weights: torch.Tensor) -> torch.Tensor:
    """Make attention weights causal after the softmax.

    Remove the future, then let each row sum to 1 again.
    weights: (T, T), above zero, each row summing to 1.
    Returns (T, T), zero above the diagonal, each row summing to 1.
    For example (6, 6) -> (6, 6).
    """
    kept = torch.tril(weights)  # (T, T)
    return kept / kept.sum(dim=-1, keepdim=True)  # (T, T) / (T, 1)


def masked_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Put minus infinity in the place of every score that is hidden.

    The scores passed in are left as they are. scores: (..., T, T), mask: a bool
    tensor (T, T), True where hidden, not always the causal one. Returns (..., T, T).
    For example scores (2, 6, 6), mask (6, 6) -> (2, 6, 6).
    """
    return scores.masked_fill(mask, float("-inf"))  # the mask broadcasts over the leading dimensions


def causal_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    """Turn scores into causal attention weights.

    Hide the future, divide by the square root of d_k, then take the softmax.
    scores: (..., T, T), d_k: the width of a key.
    Returns weights (..., T, T), zero above the diagonal, whose rows sum to 1.
    For example (2, 6, 6) -> (2, 6, 6).
    """
    num_tokens = scores.shape[-1]
    mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool, device=scores.device).triu(diagonal=1)  # (T, T)
    return torch.softmax(scores.masked_fill(mask, float("-inf")) / d_k**0.5, dim=-1)


def hunt_causal_softmax() -> torch.Tensor:
    """Return an input on which the wrong causal_softmax differs from the right one.

    It is scores, (T, T), float32, with at most twelve numbers; d_k is 4.
    """
    return torch.full((2, 2), -20000.0)  # below -10000, which is not minus infinity


def attention_dropout(
    weights: torch.Tensor,
    p: float,
    training: bool = True,
) -> torch.Tensor:
    """Drop each weight with probability p and divide the kept ones by 1 - p.

    Outside of training, change nothing. weights: any shape, p: at least 0 and below 1.
    Each weight is drawn independently, again in each call.
    Returns the shape of weights, for example (2, 6, 6) -> (2, 6, 6).
    """
    if not training:
        return weights
    kept = torch.rand_like(weights) >= p
    return weights * kept / (1 - p)


def causal_head(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """Causal scaled dot-product attention of one head, without the library's attention.

    queries, keys, values: (b, T, head_dim) each. Returns (b, T, head_dim).
    For example (2, 6, 4) three times -> (2, 6, 4).
    """
    num_tokens, head_dim = queries.shape[-2:]
    scores = queries @ keys.transpose(-2, -1)  # (b, T, head_dim) @ (b, head_dim, T) -> (b, T, T)
    mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool, device=scores.device).triu(diagonal=1)  # (T, T)
    weights = torch.softmax(scores.masked_fill(mask, float("-inf")) / head_dim**0.5, dim=-1)
    return weights @ values  # (b, T, T) @ (b, T, head_dim) -> (b, T, head_dim)


class CausalAttention(nn.Module):
    """Single-head causal self-attention over a batch, with dropout on the weights.

    d_in: width of an input vector, d_out: width of queries, keys and values,
    context_length: the most tokens that a sequence can have,
    dropout: the probability that a weight is dropped in training,
    qkv_bias: whether the layers have a bias.
    The nn.Linear layers W_query, W_key and W_value are created in this order.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.mask: torch.Tensor  # for type checkers: a buffer is a tensor
        mask = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("mask", mask)  # (context_length, context_length)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the context vectors.

        x is (b, T, d_in) with T <= context_length, the result (b, T, d_out).
        """
        queries: torch.Tensor = self.W_query(x)  # (b, T, d_out)
        keys: torch.Tensor = self.W_key(x)  # (b, T, d_out)
        values: torch.Tensor = self.W_value(x)  # (b, T, d_out)
        num_tokens, d_k = keys.shape[-2:]
        scores = queries @ keys.transpose(-2, -1)  # (b, T, T)
        scores = scores.masked_fill(self.mask[:num_tokens, :num_tokens], float("-inf"))
        weights: torch.Tensor = self.dropout(torch.softmax(scores / d_k**0.5, dim=-1))
        return weights @ values  # (b, T, T) @ (b, T, d_out) -> (b, T, d_out)


class MultiHeadAttentionWrapper(nn.Module):
    """Several heads of CausalAttention, each with its own weights, side by side.

    d_out: the width of one head's result, num_heads: how many heads; the other
    arguments go to each CausalAttention. The heads are in the nn.ModuleList `heads`.
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
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the context vectors of all heads.

        x is (b, T, d_in), the result (b, T, num_heads * d_out).
        """
        return torch.cat([head(x) for head in self.heads], dim=-1)


# Model answers to the written questions.
WRITTEN = {
    "why_mask_before_softmax": """
    Softmax gives every key a share of the same sum, so the denominator of each row holds the future keys too. Setting
    their weights to zero afterwards leaves rows that sum to less than 1, the early ones most of all: the first row
    keeps only what it gave to itself. Context vectors shrink, and by how much depends on tokens that the query must not
    know, so that the future leaks through the denominator. With scores of minus infinity before the softmax the future
    keys have exp(-inf) = 0 in the denominator: rows sum to 1, and nothing of the future is in them. Masking afterwards
    is right only if each row is divided by its sum again. With large scores even that can fail: where a future key has
    nearly all the weight, the kept ones can round to zero, and the division gives NaN.

    One point each for:

    - the denominator of each row holds the future keys too;
    - so the rows sum to less than 1 afterwards, by an amount that the future decides;
    - minus infinity before the softmax leaves nothing of the future in the denominator.
    """,
}

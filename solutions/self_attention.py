"""Unit 2: self-attention with trainable weights."""

import torch
from torch import nn


def attention_scores(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Score every query against every key by their dot product.

    queries: (..., Tq, d_k), keys: (..., Tk, d_k). Returns (..., Tq, Tk): row i holds query i's scores.
    """
    return queries @ keys.transpose(-2, -1)  # (..., Tq, d_k) @ (..., d_k, Tk) -> (..., Tq, Tk)


def scaled_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    """Turn scores into attention weights: divide by the square root of d_k, then softmax over the last dimension.

    scores: (..., Tq, Tk), d_k: the width of a key. Returns weights of the same shape whose rows sum to 1.
    """
    return torch.softmax(scores / d_k**0.5, dim=-1)


class SelfAttention_v1(nn.Module):
    """Single-head self-attention over one sequence.

    d_in: width of an input vector, d_out: width of queries, keys and values.
    The parameters W_query, W_key and W_value are created in this order, each nn.Parameter(torch.rand(d_in, d_out)).
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the context vectors: x is (T, d_in), the result (T, d_out)."""
        queries = x @ self.W_query  # (T, d_out)
        keys = x @ self.W_key  # (T, d_out)
        values = x @ self.W_value  # (T, d_out)
        scores = queries @ keys.T  # (T, T)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ values  # (T, T) @ (T, d_out) -> (T, d_out)

"""Unit 2: self-attention with trainable weights."""

import torch
from torch import nn


def build_vocab(sentence: str) -> dict[str, int]:
    """Number the distinct words of a sentence in alphabetical order.

    Commas are dropped, then the sentence is split at white space. Python's sort order
    decides: capitals come first. Returns a dict from word to index, 0 to n - 1.
    """
    words = sentence.replace(",", "").split()
    return {word: index for index, word in enumerate(sorted(set(words)))}


def encode(sentence: str, vocab: dict[str, int]) -> torch.Tensor:
    """Look up every word of a sentence in the vocabulary.

    Commas are dropped, then the sentence is split at white space. Returns an int64
    tensor of shape (T,), in the order of the sentence. A word that is not in the
    vocabulary raises KeyError.
    """
    return torch.tensor([vocab[word] for word in sentence.replace(",", "").split()], dtype=torch.int64)


def embed(tokens: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Look up every token's row in an embedding table.

    tokens: int64 of shape (T,), table: (V, d), a row for each of the tokens 0 to V - 1.
    Returns (T, d): six tokens and a table of shape (6, 16) give (6, 16). The result has
    the table's dtype and device, and gradients flow to the table: a row that is looked
    up twice gets both. A token of V or more raises IndexError. Negative tokens are not
    tested.
    """
    return table[tokens]  # (V, d) at (T,) -> (T, d)


def project_qkv(
    inputs: torch.Tensor,
    W_query: torch.Tensor,
    W_key: torch.Tensor,
    W_value: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Make each token's query, key and value.

    inputs: (T, d_in), weights: (d_in, d_k), (d_in, d_k), (d_in, d_v).
    Returns (queries, keys, values) of shapes (T, d_k), (T, d_k), (T, d_v).
    For example (6, 3), (3, 2), (3, 2), (3, 4) -> (6, 2), (6, 2), (6, 4).
    """
    return inputs @ W_query, inputs @ W_key, inputs @ W_value


def linear_projection(inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Project with a weight that is stored the other way round, as nn.Linear stores it.

    inputs: (..., d_in), weight: (d_out, d_in). Returns (..., d_out).
    For example (6, 16), (24, 16) -> (6, 24).
    """
    return inputs @ weight.T  # (..., d_in) @ (d_in, d_out) -> (..., d_out)


def attention_scores(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Score every query against every key by their dot product.

    queries: (..., Tq, d_k), keys: (..., Tk, d_k).
    Returns (..., Tq, Tk): row i holds query i's scores.
    For example queries (5, 4), keys (7, 4) -> (5, 7).
    """
    return queries @ keys.transpose(-2, -1)  # (..., Tq, d_k) @ (..., d_k, Tk) -> (..., Tq, Tk)


def scaled_softmax(scores: torch.Tensor, d_k: int) -> torch.Tensor:
    """Turn scores into attention weights.

    Divide by the square root of d_k, then take the softmax over the last dimension.
    scores: (..., Tq, Tk), d_k: the width of a key.
    Returns weights of the same shape whose rows sum to 1, for example (5, 7) -> (5, 7).
    """
    return torch.softmax(scores / d_k**0.5, dim=-1)


def context_vectors(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Give every query the sum of the values, each times its weight.

    weights: (..., Tq, Tk), values: (..., Tk, d_v). Returns (..., Tq, d_v).
    For example weights (5, 7), values (7, 2) -> (5, 2).
    """
    return weights @ values  # (..., Tq, Tk) @ (..., Tk, d_v) -> (..., Tq, d_v)


def single_query_attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """Scaled dot-product attention of one query.

    query: (d_k,), keys: (T, d_k), values: (T, d_v); d_v may differ from d_k.
    Returns the context vector (d_v,), for example (4,), (7, 4), (7, 2) -> (2,).
    The library's attention is not allowed here.
    """
    scores = keys @ query  # (T, d_k) @ (d_k,) -> (T,)
    weights = torch.softmax(scores / query.shape[-1] ** 0.5, dim=-1)
    return weights @ values  # (T,) @ (T, d_v) -> (d_v,)


def scaled_dot_product_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """softmax(Q K^T / sqrt(d_k)) V, without the library's attention.

    queries: (..., Tq, d_k), keys: (..., Tk, d_k), values: (..., Tk, d_v).
    Returns (..., Tq, d_v), for example (5, 4), (7, 4), (7, 2) -> (5, 2).
    """
    scores = queries @ keys.transpose(-2, -1)  # (..., Tq, Tk)
    weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
    return weights @ values  # (..., Tq, d_v)


def hunt_scaled_dot_product_attention() -> tuple[torch.Tensor, ...]:
    """Return an input on which the wrong attention differs from the right one.

    It is queries, keys, values: (Tq, d_k), (Tk, d_k), (Tk, d_v), float32, with at
    most twelve numbers in all three together.
    """
    queries, keys = torch.tensor([[1.0]]), torch.tensor([[0.0], [1.0]])  # keys of width 1, scores that differ
    return queries, keys, torch.tensor([[0.0, 0.0], [1.0, 1.0]])  # values of another width


def score_variance(
    queries: torch.Tensor,
    keys: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure the variance of all scores before and after dividing by sqrt(d_k).

    queries: (..., Tq, d_k), keys: (..., Tk, d_k).
    Returns two 0-d tensors: Tensor.var() of the raw scores, and of the scaled ones.
    For example (5, 4), (7, 4) -> (), ().
    """
    scores = queries @ keys.transpose(-2, -1)  # (..., Tq, Tk)
    return scores.var(), (scores / keys.shape[-1] ** 0.5).var()


class SelfAttention_v1(nn.Module):
    """Single-head self-attention over one sequence.

    d_in: width of an input vector, d_out: width of queries, keys and values.
    The parameters W_query, W_key and W_value are created in this order, each
    nn.Parameter(torch.rand(d_in, d_out)).
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return context vectors: x (T, d_in) -> (T, d_out), as (6, 3) -> (6, 2)."""
        queries = x @ self.W_query  # (T, d_out)
        keys = x @ self.W_key  # (T, d_out)
        values = x @ self.W_value  # (T, d_out)
        scores = queries @ keys.T  # (T, T)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ values  # (T, T) @ (T, d_out) -> (T, d_out)


class SelfAttention_v2(nn.Module):
    """Single-head self-attention over one sequence, its projections nn.Linear layers.

    d_in: width of an input vector, d_out: width of queries, keys and values,
    qkv_bias: whether the layers have a bias.
    The layers W_query, W_key and W_value are created in this order.
    """

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return context vectors: x (T, d_in) -> (T, d_out), as (6, 3) -> (6, 2)."""
        queries: torch.Tensor = self.W_query(x)  # (T, d_out)
        keys: torch.Tensor = self.W_key(x)  # (T, d_out)
        values: torch.Tensor = self.W_value(x)  # (T, d_out)
        scores = queries @ keys.T  # (T, T)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return weights @ values  # (T, T) @ (T, d_out) -> (T, d_out)


def copy_weights(v1: SelfAttention_v1, v2: SelfAttention_v2) -> None:
    """Copy the weights of v1 into v2, so that both give the same outputs.

    v1's matrices W_query, W_key and W_value are (d_in, d_out), the weights of v2's
    layers of these names (d_out, d_in): with d_in = 3 and d_out = 2, a (3, 2) matrix
    goes into a (2, 3) weight. Where v2's layers have a bias, it becomes zero.
    v1 stays as it is, and v2 keeps its own parameters, which can learn: they are
    copies, and later changes of v1 do not show in v2. Returns None.
    """
    pairs = [(v1.W_query, v2.W_query), (v1.W_key, v2.W_key), (v1.W_value, v2.W_value)]
    with torch.no_grad():
        for matrix, layer in pairs:
            layer.weight.copy_(matrix.T)  # (d_in, d_out) -> (d_out, d_in)
            if layer.bias is not None:
                layer.bias.zero_()


# Model answers to the written questions.
WRITTEN = {
    "why_scale": """
    A score is a sum of d_k products. If queries and keys have independent entries with mean 0 and variance 1, each
    product has variance 1 and the sum has variance d_k, so scores have a standard deviation of sqrt(d_k). For d_k = 64
    differences of 8 and more between scores are then common, and softmax often puts nearly all the weight on one key.
    There its gradient is close to zero, and the weights W_query and W_key hardly learn. Dividing by sqrt(d_k) brings
    the variance back to 1 for every width.

    One point each for:

    - the variance of a score grows with d_k: at 64 its standard deviation is 8;
    - softmax then often puts nearly all the weight on one key;
    - there hardly any gradient is left, so the weights hardly learn.
    """,
}

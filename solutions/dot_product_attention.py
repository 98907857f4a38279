"""Unit 1: attention without weights, from dot products alone."""

import torch


def dot_product_scores(query: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Score one query against every input by their dot product.

    query: (d,), inputs: (T, d), one token a row.
    Returns (T,): how well each token fits the query.
    For example query (3,), inputs (6, 3) -> (6,).
    """
    return inputs @ query  # (T, d) @ (d,) -> (T,)


def normalize_by_sum(scores: torch.Tensor) -> torch.Tensor:
    """Divide scores by their sum, so that the last dimension sums to 1.

    scores: (..., T). Returns the same shape, for example (4, 6) -> (4, 6).
    """
    return scores / scores.sum(dim=-1, keepdim=True)


def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Turn scores into positive weights that sum to 1 along `dim`, from exp and a sum.

    scores: any shape and any float dtype, with numbers as large as 1e4.
    Returns the same shape and dtype, for example (4, 6) -> (4, 6).
    The library's softmax, log_softmax and logsumexp are not allowed here.
    """
    shifted = scores - scores.amax(dim=dim, keepdim=True)  # exp(0) = 1 is the largest number left
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


def hunt_softmax() -> torch.Tensor:
    """Return an input on which the wrong softmax differs from the right one.

    It is scores, (R, T), float32, with at most twelve numbers.
    """
    return torch.tensor([[0.0, 0.0], [-200.0, -200.0]])  # far below the largest of all, exp is 0 in a whole row


def context_vector(weights: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Blend the inputs: the sum of all tokens, each times its weight.

    weights: (T,), inputs: (T, d). Returns (d,), for example (6,), (6, 3) -> (3,).
    """
    return weights @ inputs  # (T,) @ (T, d) -> (d,)


def pairwise_scores(inputs: torch.Tensor) -> torch.Tensor:
    """Score every token against every token by their dot product.

    inputs: (T, d). Returns (T, T): row i holds the scores of token i as the query.
    For example (6, 3) -> (6, 6).
    """
    return inputs @ inputs.T  # (T, d) @ (d, T) -> (T, T)


def simple_self_attention(inputs: torch.Tensor) -> torch.Tensor:
    """Give every token its context vector.

    Pairwise scores, softmax over each row, weighted sum of the inputs.
    inputs: (T, d). Returns (T, d), for example (6, 3) -> (6, 3).
    The library's attention is not allowed here.
    """
    weights = torch.softmax(inputs @ inputs.T, dim=-1)  # (T, T)
    return weights @ inputs  # (T, T) @ (T, d) -> (T, d)


# Model answers to the written questions.
WRITTEN = {
    "why_softmax": """
    Weights should be positive and sum to 1. Dividing by the sum gives that only where all scores are positive: for the
    scores [1, -1] the sum is 0 and the division fails, and for [2, -1] one share is 2 and the other -1. Softmax takes
    exponentials first, which are positive for any score, so [1, -1] becomes [0.88, 0.12] and [2, -1] [0.95, 0.05]. It
    also has a gradient everywhere and keeps the order of the scores.

    One point each for:

    - the sum of scores may be 0, and a negative score makes a negative share;
    - a list of scores for which the division fails;
    - what softmax makes of that list: positive numbers that sum to 1.
    """,
}

"""Unit 8: the parts of a language model that learns to write."""

from collections.abc import Callable

import torch


def sinusoidal_positions(num_tokens: int, d: int) -> torch.Tensor:
    """Return a row of d numbers for each position, as in the first Transformer.

    d is even. Position p has sin(p / 10000^(2i / d)) in column 2i, and the cosine
    of the same angle in column 2i + 1. Returns (num_tokens, d), float32.
    """
    places = torch.arange(num_tokens).unsqueeze(-1)  # (T, 1)
    angles = places / 10000.0 ** (torch.arange(0, d, 2) / d)  # (T, 1) / (d / 2,) -> (T, d / 2)
    waves = torch.stack([torch.sin(angles), torch.cos(angles)], dim=-1)  # (T, d / 2, 2)
    return waves.flatten(1)  # (T, d)


def next_token_loss(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Return how surprised a model is by each next token, in the mean.

    logits: (b, T, V), the model's scores at each place. tokens: (b, T), int64.
    Position t predicts token t + 1. Returns a 0-d tensor: the mean of minus the
    natural logarithm of what softmax gives the right token, over b * (T - 1).
    """
    log_probabilities = torch.log_softmax(logits[:, :-1], dim=-1)  # (b, T - 1, V)
    targets = tokens[:, 1:].unsqueeze(-1)  # (b, T - 1, 1)
    return -log_probabilities.gather(-1, targets).mean()


def sample_next(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    """Draw a next token for each row of logits, by chance.

    logits: (b, V). Drawn from are the top_k tokens with the largest logits, or all
    V if top_k is larger, with the probabilities softmax(logits / temperature) over
    these. With temperature 0 it is the largest logit. Returns (b,), int64.
    """
    if temperature == 0:
        return logits.argmax(dim=-1)
    k = min(top_k, logits.shape[-1])
    least = logits.topk(k, dim=-1).values[:, -1:]  # (b, 1)
    scores = logits.masked_fill(logits < least, float("-inf")) / temperature
    probabilities = torch.softmax(scores, dim=-1)  # (b, V)
    return torch.multinomial(probabilities, num_samples=1).squeeze(-1)  # (b, 1) -> (b,)


def generate(
    model: Callable[[torch.Tensor], torch.Tensor],
    tokens: torch.Tensor,
    n: int,
    context_length: int,
) -> torch.Tensor:
    """Append n tokens to each prompt, always the one with the largest logit.

    model: takes tokens (b, T), T at most context_length, and gives logits (b, T, V).
    tokens: (b, T), the prompts, which may be longer than that: then the model reads
    the last context_length of them. Returns (b, T + n), int64.
    """
    for _ in range(n):
        logits = model(tokens[:, -context_length:])  # (b, T, V)
        following = logits[:, -1].argmax(dim=-1, keepdim=True)  # (b, V) -> (b, 1)
        tokens = torch.cat([tokens, following], dim=1)  # (b, T + 1)
    return tokens


def hunt_next_token_loss() -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input on which the wrong next_token_loss differs from the right one.

    It is logits (b, T, V), float32, and tokens (b, T), int64 and below V, with at
    most twelve numbers in both together.
    """
    logits = torch.tensor([[[0.0, 0.0], [5.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    tokens = torch.tensor([[0, 1], [1, 0]])  # the last place of the first sentence expects 0, not 1
    return logits, tokens

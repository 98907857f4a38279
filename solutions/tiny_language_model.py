"""Unit 8: the parts of a language model that learns to write."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn


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
    """Return the mean loss of a model's predictions of each next token.

    logits: (b, T, V), the model's scores at each position. tokens: (b, T), int64.
    Position t predicts token t + 1. Returns a 0-d tensor: the mean, over all
    b * (T - 1) predictions, of -ln(probability that softmax gives the right token).
    """
    log_probabilities = torch.log_softmax(logits[:, :-1], dim=-1)  # (b, T - 1, V)
    targets = tokens[:, 1:].unsqueeze(-1)  # (b, T - 1, 1)
    return -log_probabilities.gather(-1, targets).mean()


class TransformerBlock(nn.Module):
    """A block of a language model: attention, then an MLP for each token.

    d: width of x, num_heads: how many heads share it, context_length: the longest
    sequence. A block of a language model is always causal, so forward takes no mask:
    the block can make one mask here, for context_length tokens, and cut it to x.
    The layers norm1 (LayerNorm), W_query, W_key, W_value, out_proj (d to d), norm2
    (LayerNorm), linear1 (d to 4d) and linear2 (4d to d), all with biases, are created
    in this order. Raises ValueError if num_heads does not divide d.
    """

    def __init__(self, d: int, num_heads: int, context_length: int) -> None:
        super().__init__()
        if d % num_heads != 0:
            raise ValueError(f"d = {d} is not divisible by num_heads = {num_heads}.")
        self.num_heads, self.head_dim = num_heads, d // num_heads
        self.norm1 = nn.LayerNorm(d)
        self.W_query = nn.Linear(d, d)
        self.W_key = nn.Linear(d, d)
        self.W_value = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)
        self.norm2 = nn.LayerNorm(d)
        self.linear1 = nn.Linear(d, 4 * d)
        self.linear2 = nn.Linear(4 * d, d)
        self.future: torch.Tensor  # for type checkers: a buffer is a tensor
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x after attention to earlier tokens and the MLP.

        x: (b, T, d), T at most context_length. The result has the same shape.
        """
        b, num_tokens, d = x.shape
        split = (b, num_tokens, self.num_heads, self.head_dim)
        normed = self.norm1(x)
        queries = self.W_query(normed).view(split).transpose(1, 2)  # (b, h, T, hd)
        keys = self.W_key(normed).view(split).transpose(1, 2)
        values = self.W_value(normed).view(split).transpose(1, 2)
        scores = queries @ keys.transpose(-2, -1) / self.head_dim**0.5  # (b, h, T, T)
        scores = scores.masked_fill(self.future[:num_tokens, :num_tokens], float("-inf"))
        found = torch.softmax(scores, dim=-1) @ values  # (b, h, T, hd)
        merged = found.transpose(1, 2).reshape(b, num_tokens, d)
        x = x + self.out_proj(merged)
        hidden = F.gelu(self.linear1(self.norm2(x)))  # (b, T, 4d)
        result: torch.Tensor = x + self.linear2(hidden)
        return result


def heads_by_hand(
    head: str,
    num_words: int,
    num_places: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return W_query, W_key and W_value of a head that attends to the named tokens.

    head: "itself", "first", "previous", "average" or "same word". A token is a row of
    num_words + num_places elements: its word as a one-hot vector, then its position.
    W_query and W_key are (num_words + num_places, d_k), for a d_k of your choice;
    W_value is (num_words + num_places, num_words), and gives the token's word.
    """
    tokens = torch.eye(num_words + num_places)
    words, places = tokens[:, :num_words], tokens[:, num_words:]  # (d, num_words), (d, num_places)
    asks, finds = places, places
    if head == "first":  # every query is 1, and so is the key of place 0 alone
        asks, finds = places.sum(dim=-1, keepdim=True), places[:, :1]
    if head == "previous":
        before = (torch.arange(num_places) - 1).clamp(min=0)
        asks = places @ torch.eye(num_places)[before]
    if head == "average":
        asks, finds = torch.zeros(num_words + num_places, 1), torch.zeros(num_words + num_places, 1)
    if head == "same word":
        asks, finds = words, words
    return 1000.0 * asks, finds, words


def sample_next(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    """Draw a next token at random for each row of logits.

    logits: (b, V), top_k: at least 1. Only the top_k tokens with the largest logits can
    be drawn, or all V if top_k is larger, with the probabilities
    softmax(logits / temperature) over these. If logits tie at the k-th place, k tokens
    or all that tie can be drawn. Temperature 0 gives the token with the largest logit.
    Returns (b,), int64.
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
    tokens: (b, T), int64, the prompts, which may be longer than that: then the model
    reads the last context_length of them. Returns (b, T + n), int64.
    """
    for _ in range(n):
        logits = model(tokens[:, -context_length:])  # (b, T, V)
        following = logits[:, -1].argmax(dim=-1, keepdim=True)  # (b, V) -> (b, 1)
        tokens = torch.cat([tokens, following], dim=1)  # (b, T + 1)
    return tokens


def hunt_next_token_loss() -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input on which the wrong next_token_loss differs from the right one.

    Returns logits (b, T, V), float32, and tokens (b, T), int64 and below V, with at
    most twelve elements in both together.
    """
    logits = torch.tensor([[[100.0, 0.0], [0.0, 0.0]]])
    tokens = torch.tensor([[0, 1]])  # the probability of token 1 is exp(-100): the loss is 100
    return logits, tokens


# Model answers to the written questions.
WRITTEN = {
    "why_train_at_once": """
    In training all of the text is there. The causal mask hides from each place what comes after it, so the prediction
    at place t is the same as if the text ended there: one pass over T tokens gives T - 1 predictions, each with its
    own right answer, and all are learned from at once. What a place reads are the true tokens before it, not those
    that the model would have written, so no place has to wait for another one.

    When the model writes, the next token is not there: it must be chosen from the prediction at the last place before
    anything can be said of the one after it, as it is read there. So n tokens take n passes, one after another.

    One point each for:

    - with the mask, each place's prediction depends only on the tokens up to it, so one pass trains all places;
    - in training the true tokens are given, so no prediction waits for another one;
    - in writing each token is an input of the next prediction, so they come one after another, a pass each.
    """,
}

"""Inputs and printed values of the source document's worked examples."""

import torch

from solutions.six_words import SIX_WORDS

# The whole context vector that the source document prints for the second word of "Life is short, eat dessert first".
LIFE_IS_SHORT_CONTEXT = [
    -1.5993, 0.0156, 1.2670, 0.0032, -0.6460, -1.1407, -0.4908,
    -1.4632, 0.4747, 1.1926, 0.4506, -0.7110, 0.0602, 0.7125,
    -0.1628, -2.0184, 0.3838, -2.1188, -0.8136, -1.5694, 0.7934,
    -0.2911, -1.3640, -0.2366, -0.9564, -0.5265, 0.0624, 1.7084,
]  # fmt: skip
# The tokens of "Life is short, eat dessert first".
LIFE_IS_SHORT = [0, 4, 5, 2, 1, 3]
# The embeddings of its first word, "Life", token 0: what `nn.Embedding(6, 16)` draws under seed 123.
LIFE = [
    0.3374, -0.1778, -0.3035, -0.5880, 0.3486, 0.6603, -0.2196, -0.3792,
    0.7671, -1.1925, 0.6984, -1.4097, 0.1794, 1.8951, 0.4954, 0.2692,
]  # fmt: skip
# The six words' context vectors under the weights that each seed draws.
SEED_123_CONTEXT = [
    [0.2996, 0.8053], [0.3061, 0.8210], [0.3058, 0.8203], [0.2948, 0.7939], [0.2927, 0.7891], [0.2990, 0.8040],
]  # fmt: skip
SEED_789_CONTEXT = [
    [-0.0739, 0.0713], [-0.0748, 0.0703], [-0.0749, 0.0702], [-0.0760, 0.0685], [-0.0763, 0.0679], [-0.0754, 0.0693],
]  # fmt: skip


def seed_123_weights() -> list[torch.Tensor]:
    """The (3, 2) weights for queries, keys and values of the worked example with six words."""
    generator = torch.Generator().manual_seed(123)
    return [torch.rand(3, 2, generator=generator) for _ in range(3)]


def projections() -> tuple[torch.Tensor, ...]:
    """Queries, keys and values of the six words."""
    # In float64, so that the last digit is the same on every CPU.
    return tuple((SIX_WORDS.double() @ W.double()).float() for W in seed_123_weights())  # (6, 3) @ (3, 2) -> (6, 2)


def embedding_table() -> torch.Tensor:
    """The table of the worked example with 16 numbers for each of six words."""
    return torch.randn(6, 16, generator=torch.Generator().manual_seed(123))


def life_is_short() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The query of the second word, and all keys and values, of the worked example with d_k = 24 and d_v = 28."""
    inputs = embedding_table().double()[LIFE_IS_SHORT]
    generator = torch.Generator().manual_seed(123)
    W_query, W_key, W_value = (torch.rand(width, 16, generator=generator).double() for width in (24, 24, 28))
    projected = inputs[1] @ W_query.T, inputs @ W_key.T, inputs @ W_value.T
    query, keys, values = (tensor.round(decimals=5).float() for tensor in projected)
    return query, keys, values


def unit_gaussians() -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys of the worked example on variance, of shape (4, 8, 16)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1337)
        torch.randn(4, 8, 32)
        for _ in range(3):
            torch.nn.Linear(32, 16, bias=False)
        keys, queries = torch.randn(4, 8, 16), torch.randn(4, 8, 16)
    return queries.double().round(decimals=4).float(), keys.double().round(decimals=4).float()

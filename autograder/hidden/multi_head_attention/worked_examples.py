"""What the source document's worked examples start from and print."""

import torch


def twice(sequence: torch.Tensor) -> torch.Tensor:
    """A batch of the same sequence twice, as the source document's worked examples have it."""
    return torch.stack((sequence, sequence))


# The queries, keys and context vectors that the source document prints: three tokens, two heads of width 3.
QUERIES = torch.tensor(
    [
        [-0.2077, 0.0027, 0.3938, 0.3667, -0.3282, 0.4679],
        [-0.0103, 0.0498, 0.2366, 0.4801, -0.8703, 0.1963],
        [-0.3723, -0.0854, 0.3992, 0.4328, -0.6178, 0.7257],
    ]
)
QUERIES_BY_HEAD = torch.tensor(
    [
        [[-0.2077, 0.0027, 0.3938], [-0.0103, 0.0498, 0.2366], [-0.3723, -0.0854, 0.3992]],
        [[0.3667, -0.3282, 0.4679], [0.4801, -0.8703, 0.1963], [0.4328, -0.6178, 0.7257]],
    ]
)
KEYS_BY_HEAD = torch.tensor(
    [
        [[0.3515, 0.2409, -0.1456], [-0.1191, 0.5451, 0.1034], [-0.1510, 0.5555, -0.0889]],
        [[0.4784, 0.1651, 0.4541], [0.3757, 0.0823, 0.0383], [0.6659, 0.0394, -0.1219]],
    ]
)
CONTEXT_BY_HEAD = torch.tensor(
    [
        [[-0.1674, -0.5873, -0.3776], [-0.1674, -0.5863, -0.3775], [-0.1673, -0.5880, -0.3772]],
        [[-0.2045, 0.2991, 0.2583], [-0.2103, 0.3089, 0.2634], [-0.2006, 0.2925, 0.2540]],
    ]
)
THREE_TOKENS = torch.tensor(
    [
        [0.2745, 0.6584, 0.2775, 0.8573, 0.6584, 0.2775],
        [0.8993, 0.0390, 0.9268, 0.7388, 0.8993, 0.0390],
        [0.7179, 0.7058, 0.9156, 0.4340, 0.7179, 0.9156],
    ]
)

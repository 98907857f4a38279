"""Random inputs of this unit's hidden tests."""

import torch

from autograder.graders.proxy import Cases


def whole(rng: Cases, least: int, most: int) -> int:
    """A drawn whole number."""
    return least + int((rng.rand(1).item() - 0.1) * (most + 1 - least) * 0.999)


def tokens(rng: Cases, *shape: int, words: int) -> torch.Tensor:
    """Draw tokens of a vocabulary of `words` words."""
    return ((rng.rand(*shape) - 0.1) * words * 0.999).long()

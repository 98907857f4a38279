"""Infer what dropout did inside attention: with values = identity, the result is the weight matrix itself.

The values are two identities side by side, so that the result shows every weight twice. Dropout on the weights drops
both copies of one; dropout on values or on the result does not.
"""

from typing import Any

import torch

from autograder.core import random_results
from autograder.core.comparison import Mismatch, assert_real, describe
from autograder.core.random_results import Dropped, Structure
from autograder.graders.proxy import Cases

TOKENS = 48
BATCH = 2
LAYERS = ("W_query.weight", "W_key.weight", "W_value.weight")
DIMENSIONS = ("sequence", "query", "key")
X = torch.eye(TOKENS).expand(BATCH, -1, -1)
"""The input: token i is the i-th unit vector, in every sequence of the batch."""


def weights_of_one_head(rng: Cases) -> dict[str, torch.Tensor]:
    """The weights of a head with d_in = T and d_out = 2T, by name; W_value makes two identities."""
    spread = [rng.randn(2 * TOKENS, TOKENS, scale=0.7) for _ in range(2)]
    return dict(zip(LAYERS, [*spread, torch.eye(TOKENS).repeat(2, 1)], strict=True))


def structure(result: Any, layers: dict[str, torch.Tensor], p: float) -> Structure:
    """Return the structure of one head's result for X; raises Mismatch if the result has another shape."""
    if not isinstance(result, torch.Tensor):
        raise Mismatch(f"The result is {describe(result)}, not a tensor.")
    if result.shape != (BATCH, TOKENS, 2 * TOKENS):
        raise Mismatch(f"The result has shape {tuple(result.shape)}; {(BATCH, TOKENS, 2 * TOKENS)} is expected.")
    assert_real(result)
    first, second = result.detach().double().chunk(2, dim=-1)
    visible = torch.ones(BATCH, TOKENS, TOKENS, dtype=torch.bool).tril()
    right = _causal_weights(layers).expand(BATCH, -1, -1)
    repeated = random_results.repeats(first == 0, visible, DIMENSIONS)
    return Structure(
        random_results.of_few_draws(random_results.dropped(first[visible], right[visible], p), repeated),
        copies_agree=torch.allclose(first, second, rtol=1e-4, atol=1e-6, equal_nan=True),
        repeats=repeated,
        pairs=random_results.pairs(first == 0, visible, DIMENSIONS),
        ahead=bool((first[~visible].abs() > 1e-4).any()),
    )


def dropped_and_repeated(result: Any, weights: torch.Tensor, p: float) -> tuple[Dropped, frozenset[str]]:
    """Return the changes to weights of shape (Tq, Tk) or (b, Tq, Tk), and the dimensions along which they repeat."""
    seen = random_results.dropped(result, weights, p)
    repeated = random_results.repeats(
        result == 0, torch.ones_like(weights, dtype=torch.bool), DIMENSIONS[-weights.dim() :]
    )
    return random_results.of_few_draws(seen, repeated), repeated


def pairs_of(result: torch.Tensor) -> frozenset[str]:
    """Return the dimensions of weights (b, Tq, Tk) along which the dropped places depend on each other."""
    return random_results.pairs(result == 0, torch.ones_like(result, dtype=torch.bool), DIMENSIONS)


def assert_weights_whole(seen: Structure) -> None:
    """Outside of training every causal weight is as the softmax made it."""
    if seen.ahead:
        raise Mismatch("Later tokens get weight: the module attends to the future.")
    random_results.assert_finite(seen.entries)
    if "dropped" in seen.entries.outcomes:
        raise Mismatch("Some weights are zero after eval(); outside of training dropout does nothing.")
    if seen.entries.outcomes != {"kept"}:
        raise Mismatch("After eval() the weights are not what they should be.")
    if not seen.copies_agree:
        raise Mismatch("The weights for one value differ from those for an equal one.")


def _causal_weights(layers: dict[str, torch.Tensor]) -> torch.Tensor:
    queries, keys = (layers[name].double().T for name in LAYERS[:2])  # of the unit vectors in X: (T, 2T)
    scores = queries @ keys.T / queries.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf), dim=-1)

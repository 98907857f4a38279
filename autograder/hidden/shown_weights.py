"""Attention weights made visible: a case in which a multi-head module's output is its weights, side by side.

The input is [I I ... I], twice for each head. Where it is its own value (directly, or by a W_value that is the
identity) and out_proj changes nothing, each head's context is [weights weights]: what is dropped from the weights is
dropped from both halves, and what is dropped anywhere else is not.
"""

from typing import Any

import torch

from autograder.core import random_results
from autograder.core.comparison import Mismatch, describe
from autograder.core.random_results import Structure

_SHARPER = 30.0
"""Stretches the queries, so that the weights of a row differ."""


def identities(num_tokens: int, num_heads: int) -> torch.Tensor:
    """The input: (2, T, h * 2T)."""
    return torch.eye(num_tokens).repeat(2, 1, 2 * num_heads)


def parameters_that_show_weights(parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The parameters with which the module's output is its weights."""
    made = dict(parameters)
    made["W_query.weight"] = parameters["W_query.weight"] * _SHARPER
    made["out_proj.weight"] = torch.eye(len(parameters["out_proj.weight"]))
    made["out_proj.bias"] = torch.zeros_like(parameters["out_proj.bias"])
    if "W_value.weight" in parameters:
        made["W_value.weight"] = torch.eye(len(parameters["W_value.weight"]))
    return made


def structure(result: Any, right: torch.Tensor, num_heads: int, p: float) -> Structure:
    """Return the changes to the weights in `right`, the output without dropout; each half of a head is a copy."""
    if not isinstance(result, torch.Tensor) or result.shape != right.shape:
        raise Mismatch(f"The result is {describe(result)}; {describe(right)} is expected.")
    shown, weights = _by_head(result.detach(), num_heads), _by_head(right, num_heads)  # (b, h, 2, T, T)
    visible = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
    seen = random_results.dropped(shown[:, :, 0, visible], weights[:, :, 0, visible], p)
    gone = (shown == 0) & visible
    repeated = frozenset[str]()
    if seen.share not in ("none", "all"):
        repeated = random_results.repeats(gone[:, :, 0], visible.expand_as(gone[:, :, 0]), random_results.DIMENSIONS)
    return Structure(
        random_results.of_few_draws(seen, repeated),
        torch.equal(gone[:, :, 0], gone[:, :, 1]),
        repeated,
        random_results.pairs(gone[:, :, 0], visible.expand_as(gone[:, :, 0]), random_results.DIMENSIONS),
    )


def assert_weights_whole(seen: Structure) -> None:
    """The weights are as they were."""
    if not seen.copies_agree:
        raise Mismatch("Elements of the output are dropped outside of training; there, dropout must do nothing.")
    random_results.assert_not_dropped(seen.entries)


def _by_head(output: torch.Tensor, num_heads: int) -> torch.Tensor:
    """The weights, by row of the batch, head and half: (b, h, 2, T, T)."""
    b, num_tokens, _ = output.shape
    return output.view(b, num_tokens, num_heads, 2, num_tokens).permute(0, 2, 3, 1, 4)

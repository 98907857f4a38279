"""Attention weights made visible: a case in which a multi-head module's output is its weights, side by side.

The input is [I I ... I], twice for each head. Where it is its own value (directly, or by a W_value that is the
identity) and out_proj changes nothing, each head's context is [weights weights]: what is dropped from the weights is
dropped from both halves, and what is dropped anywhere else is not.
"""

from dataclasses import dataclass
from typing import Any

import torch

from ..compare import Mismatch, describe
from .dropout import Dropped, assert_dropped, assert_not_dropped, dropped

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


@dataclass(frozen=True)
class DroppedInHeads:
    """What dropout did, and to what."""

    place: str
    """`weights`, `weights of all heads alike`, or `single numbers` where the halves of a head differ."""
    of_weights: Dropped | None


def dropped_in_heads(result: Any, right: torch.Tensor, num_heads: int, p: float) -> DroppedInHeads:
    """What became of the weights that `right`, the output without dropout, shows."""
    if not isinstance(result, torch.Tensor) or result.shape != right.shape:
        raise Mismatch(f"The result is {describe(result)}; {describe(right)} is expected.")
    shown, weights = _visible(result.detach(), num_heads), _visible(right, num_heads)  # (b, h, 2, entries)
    seen = dropped(shown[:, :, 0], weights[:, :, 0], p)
    gone = shown == 0
    if "changed" not in seen.outcomes and bool((gone[:, :, 0] != gone[:, :, 1]).any()):
        return DroppedInHeads("single numbers", None)
    alike = seen.share not in ("none", "all") and bool((gone == gone[:, :1]).all())
    return DroppedInHeads("weights of all heads alike" if alike else "weights", seen)


def assert_dropped_in_heads(seen: DroppedInHeads) -> None:
    """Each weight of each head is dropped with probability p, and what is kept is divided by 1-p."""
    if seen.of_weights is None:
        raise Mismatch("Numbers of the values or of the context vectors are dropped; it is weights that should be.")
    assert_dropped(seen.of_weights)
    if seen.place != "weights":
        raise Mismatch("All heads drop the same weights; each head's are dropped on their own.")


def assert_nothing_dropped_in_heads(seen: DroppedInHeads) -> None:
    """The weights are as they were."""
    if seen.of_weights is None:
        raise Mismatch("Numbers of the output are dropped; outside of training dropout does nothing.")
    assert_not_dropped(seen.of_weights)


def _visible(output: torch.Tensor, num_heads: int) -> torch.Tensor:
    """The weights that a causal mask leaves, by row of the batch, head and half."""
    b, num_tokens, _ = output.shape
    by_head = output.view(b, num_tokens, num_heads, 2, num_tokens).permute(0, 2, 3, 1, 4)  # (b, h, 2, T, T)
    rows, columns = torch.tril_indices(num_tokens, num_tokens)
    return by_head[..., rows, columns]

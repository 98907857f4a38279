"""Attention weights made visible: a case in which a multi-head module's output is its weights, side by side.

The input is [I I ... I], twice for each head. Where it is its own value (directly, or by a W_value that is the
identity) and out_proj changes nothing, each head's context is [weights weights]: what is dropped from the weights is
dropped from both halves, and what is dropped anywhere else is not.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from ..compare import Mismatch, describe
from .dropout import Dropped, assert_dropped, assert_not_dropped, dropped

_SHARPER = 30.0
"""Stretches the queries, so that the weights of a row differ."""
DIMENSIONS = ("sequence", "head", "query", "key")


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

    of_weights: Dropped
    halves_agree: bool
    """Whether both halves of each head are without the same numbers; where not, it is not weights alone that are."""
    repeats: frozenset[str]
    """The dimensions along which the same is dropped everywhere."""


def dropped_in_heads(result: Any, right: torch.Tensor, num_heads: int, p: float) -> DroppedInHeads:
    """What became of the weights that `right`, the output without dropout, shows."""
    if not isinstance(result, torch.Tensor) or result.shape != right.shape:
        raise Mismatch(f"The result is {describe(result)}; {describe(right)} is expected.")
    shown, weights = _by_head(result.detach(), num_heads), _by_head(right, num_heads)  # (b, h, 2, T, T)
    visible = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
    seen = dropped(shown[:, :, 0, visible], weights[:, :, 0, visible], p)
    gone = (shown == 0) & visible
    repeated = _repeats(gone[:, :, 0], visible) if seen.share not in ("none", "all") else frozenset[str]()
    # Where one draw decides over many entries, the share that is dropped is chance and says nothing against p.
    seen = replace(seen, share="p") if repeated else seen
    return DroppedInHeads(seen, torch.equal(gone[:, :, 0], gone[:, :, 1]), repeated)


def assert_dropped_in_heads(seen: DroppedInHeads) -> None:
    """Each weight of each head is dropped with probability p, and what is kept is divided by 1-p."""
    if not seen.halves_agree:
        raise Mismatch("Numbers of the values or of the context vectors are dropped; it is weights that should be.")
    assert_dropped(seen.of_weights)
    for name in DIMENSIONS:
        if name in seen.repeats:
            raise Mismatch(f"Every {name} has the same places dropped; each weight is dropped on its own.")


def assert_nothing_dropped_in_heads(seen: DroppedInHeads) -> None:
    """The weights are as they were."""
    if not seen.halves_agree:
        raise Mismatch("Numbers of the output are dropped; outside of training dropout does nothing.")
    assert_not_dropped(seen.of_weights)


def _by_head(output: torch.Tensor, num_heads: int) -> torch.Tensor:
    """The weights, by row of the batch, head and half: (b, h, 2, T, T)."""
    b, num_tokens, _ = output.shape
    return output.view(b, num_tokens, num_heads, 2, num_tokens).permute(0, 2, 3, 1, 4)


def _repeats(gone: torch.Tensor, visible: torch.Tensor) -> frozenset[str]:
    """Along which dimensions of (b, h, T, T) the same entries are gone everywhere, looking at visible ones."""
    visible = visible.expand_as(gone)
    return frozenset(
        name
        for dim, name in enumerate(DIMENSIONS)
        if bool(((gone == gone.roll(1, dim)) | ~(visible & visible.roll(1, dim))).all())
    )

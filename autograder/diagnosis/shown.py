"""What an answer shows at one question, in a few numbers: so that of thousands of pairs each is kept and compared.

Where these differ the answers do; where they are alike the whole fingerprints are still to be compared.
"""

from collections.abc import Hashable
from typing import Any

import torch

from ..core.observation import Observation
from ..core.packing import Opaque
from .fingerprint import SHOWN, Trace

_NEAR = 1e-3
"""Between two sums over numbers that the fingerprint takes for the same, in float32 and float64."""
_SUMMED = (torch.float32, torch.float64)
_MOST_SUMMED = 10_000
"""Numbers in a tensor: no right answer's has a tenth of them, and a sum over millions takes its time."""
_GOLDEN_ANGLE = 2.399963
"""The cosines of its multiples never repeat."""

Shown = tuple[Hashable, tuple[float, ...]]
"""All that is exact, and two sums for each tensor."""


def shown(value: Any) -> Shown:
    """What is shown by a value, or by all that a grader saw."""
    sums: list[float] = []
    return _exact(value, sums), tuple(sums)


def alike(one: Shown, other: Shown) -> bool:
    """Whether two answers may have shown the same."""
    return one[0] == other[0] and all(abs(a - b) <= _NEAR * (1 + abs(a)) for a, b in zip(one[1], other[1], strict=True))


def _exact(value: Any, sums: list[float]) -> Hashable:
    """What is exact of a value; the sums over its tensors are added to `sums`."""
    if isinstance(value, torch.Tensor):
        return _exact_of_tensor(value.detach(), sums)
    if isinstance(value, Observation):
        return tuple(_exact(getattr(value, name), sums) for name in SHOWN)
    if isinstance(value, Trace):
        return value.outcome, *(_exact(event.shown, sums) for event in value.events)
    if isinstance(value, list | tuple):
        return ("several", *(_exact(one, sums) for one in value))
    if isinstance(value, dict):
        return frozenset((repr(key), _exact(value[key], sums)) for key in sorted(value, key=repr))
    return type(value).__name__, value.name if isinstance(value, Opaque) else repr(value)


def _exact_of_tensor(tensor: torch.Tensor, sums: list[float]) -> Hashable:
    told = (tensor.dtype, tuple(tensor.shape))
    if tensor.dtype in _SUMMED and 0 < tensor.numel() <= _MOST_SUMMED:
        flat = tensor.flatten().double()
        odd = (int(flat.isnan().sum()), int(flat.isposinf().sum()), int(flat.isneginf().sum()))
        flat = flat.nan_to_num(0.0, 0.0, 0.0)
        flat = flat.sign() * flat.abs().log1p()  # beside one huge number the others still count
        places = torch.arange(1, flat.numel() + 1, dtype=torch.float64)
        sums += (float(flat.abs().sum()), float(flat @ torch.cos(places * _GOLDEN_ANGLE)))
        return (*told, odd)
    return told

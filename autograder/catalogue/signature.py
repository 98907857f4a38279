"""Reduce what an answer showed to a few numbers, so that thousands of answers can be stored and compared.

Answers with different signatures behave differently. If the signatures are alike, the transcripts may still differ.
"""

import hashlib
from collections.abc import Hashable
from typing import Any

import torch

from ..core.observation import Observation
from ..core.packing import Opaque
from ..report import Behaviour
from .transcript import COMPARED, Trace, Transcript

_NEAR = 1e-3
"""Relative difference of two sums over elements that a transcript takes for equal, in float32 and float64."""
_SUMMED = (torch.float32, torch.float64)
_MOST_SUMMED = 10_000
"""Elements of the largest tensor that is summed: no right answer's has a tenth of them."""
_GOLDEN_ANGLE = 2.399963
"""The cosines of its multiples never repeat."""
_MOST_SUMS = 64
_DIGITS = 6

Signature = tuple[Hashable, tuple[float, ...]]
"""Everything exact, and two sums for each tensor."""


def signature(value: Any) -> Signature:
    """Return the signature of a value, a trace or a transcript."""
    sums: list[float] = []
    return _exact(value, sums), tuple(sums)


def are_alike(one: Signature, other: Signature) -> bool:
    """Return whether the answers with these signatures may behave alike."""
    return one[0] == other[0] and all(abs(a - b) <= _NEAR * (1 + abs(a)) for a, b in zip(one[1], other[1], strict=True))


def short_signature(transcript: Transcript) -> Behaviour:
    """Return the signature of a transcript as it is stored in a report, for other processes.

    Equal transcripts have short signatures that are alike; nearly all others have not.
    """
    exact, sums = signature(list(transcript))
    digest = hashlib.sha256(_in_order(exact).encode(errors="surrogatepass")).hexdigest()
    return Behaviour(digest[:32], [round(number, _DIGITS) for number in sums[:_MOST_SUMS]])


def _exact(value: Any, sums: list[float]) -> Hashable:
    """Return what is exact in a value, and append the sums over its tensors to `sums`."""
    if isinstance(value, torch.Tensor):
        return _exact_in_tensor(value.detach(), sums)
    if isinstance(value, Observation):
        return tuple(_exact(getattr(value, name), sums) for name in COMPARED)
    if isinstance(value, Trace):
        return value.outcome, *(_exact(event.shown, sums) for event in value.events)
    if isinstance(value, list | tuple):
        return ("several", *(_exact(one, sums) for one in value))
    if isinstance(value, dict):
        return frozenset((repr(key), _exact(value[key], sums)) for key in sorted(value, key=repr))
    return type(value).__name__, value.name if isinstance(value, Opaque) else repr(value)


def _exact_in_tensor(tensor: torch.Tensor, sums: list[float]) -> Hashable:
    exact = (tensor.dtype, tuple(tensor.shape))
    if tensor.dtype not in _SUMMED or not 0 < tensor.numel() <= _MOST_SUMMED:
        return exact
    flat = tensor.flatten().double()
    odd = (int(flat.isnan().sum()), int(flat.isposinf().sum()), int(flat.isneginf().sum()))
    flat = flat.nan_to_num(0.0, 0.0, 0.0)
    flat = flat.sign() * flat.abs().log1p()  # next to one huge element the others still count
    positions = torch.arange(1, flat.numel() + 1, dtype=torch.float64)
    sums += (float(flat.abs().sum()), float(flat @ torch.cos(positions * _GOLDEN_ANGLE)))
    return (*exact, odd)


def _in_order(value: Hashable) -> str:
    """Return the value as text that is the same in every process, which the order of a set is not."""
    if isinstance(value, tuple):
        return f"({','.join(map(_in_order, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_in_order, value)))}}}"
    return repr(value)

"""The fingerprint of an answer: everything it showed on the graders' inputs.

27% of plausible mistakes show in no output value, so outputs, dtypes, gradients, changed arguments, faults,
parameters and device verdicts all belong to it. Two answers with equal fingerprints cannot be told apart.
"""

from dataclasses import dataclass
from typing import Any

import torch

from ..sandbox.inside.bench import Observation
from ..student.recording import Event

TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


@dataclass(frozen=True)
class Trace:
    """What one grader saw: whether it was satisfied, and each event on the way."""

    grader: str
    outcome: str
    events: tuple[Event, ...]


Fingerprint = tuple[Trace, ...]


def same(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two answers behave alike wherever the graders looked."""
    return len(one) == len(other) and all(
        a.grader == b.grader and a.outcome == b.outcome and _same_events(a.events, b.events)
        for a, b in zip(one, other, strict=True)
    )


def _same_events(one: tuple[Event, ...], other: tuple[Event, ...]) -> bool:
    return len(one) == len(other) and all(
        a.operation == b.operation and _same_value(a.shown, b.shown) for a, b in zip(one, other, strict=True)
    )


def _same_value(one: Any, other: Any) -> bool:
    if isinstance(one, Observation) and isinstance(other, Observation):
        return (
            one.changed == other.changed
            and one.devices == other.devices
            and _same_value(one.value, other.value)
            and _same_value(one.gradients, other.gradients)
            and _same_value(one.parameter_gradients, other.parameter_gradients)
        )
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _same_tensor(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same_value, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same_value(one[key], other[key]) for key in one)
    return bool(one == other)


def _same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    tolerance = TOLERANCE.get(one.dtype, 0.0)
    return torch.allclose(one.detach(), other.detach(), rtol=tolerance, atol=tolerance, equal_nan=True)

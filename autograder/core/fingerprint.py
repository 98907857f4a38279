"""Reduce results to a few numbers, to compare those of hundreds of edited answers without sending them."""

import zlib
from typing import Any

import torch

from .observation import Observation

_PARTS = ("value", "changed", "devices", "gradients", "parameter_gradients")
_TOLERANCE = 1e-4


def print_of(result: Any) -> torch.Tensor:
    """Return three numbers, (3,): a checksum of types, shapes and dtypes, and two sums of all elements.

    Equal results have close prints; different results rarely do. The checksum is never 0.
    """
    words: list[str] = []
    sums = torch.zeros(2, dtype=torch.float64)
    waiting = [[getattr(result, part) for part in _PARTS] if isinstance(result, Observation) else result]
    while waiting:
        one = waiting.pop()
        if isinstance(one, torch.Tensor):
            words.append(f"{one.dtype} {tuple(one.shape)}")
            numbers = one.detach().double().flatten().nan_to_num(nan=17.25, posinf=1e6, neginf=-1e6)
            weights = torch.arange(1, len(numbers) + 1, dtype=torch.float64).sin_()
            sums += torch.stack([numbers.sum(), numbers @ weights]) * (1 + len(words) % 7)
        elif isinstance(one, list | tuple | dict):
            words.append(f"{len(one)}")
            waiting += one.values() if isinstance(one, dict) else one
        else:
            words.append(repr(one)[:100])
    checksum = 1 + zlib.crc32("\n".join(words).encode())
    return torch.cat([torch.tensor([checksum], dtype=torch.float64), sums])


def are_close(prints: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Return for each print whether its result equals the expected one but for rounding."""
    size = expected.abs().clamp(min=1.0)
    return ((prints - expected).abs() <= _TOLERANCE * size).all(dim=-1) & (prints[..., 0] == expected[..., 0])

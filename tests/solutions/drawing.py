"""Shapes, types and numbers to try the solutions with, and how close a result has to come.

A tolerance is a few of the type's own precisions (eps), times the size of the numbers from which a result is made.
"""

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)

sizes = st.integers(1, 5)
batches = st.integers(1, 3)
leading = st.lists(st.integers(1, 2), max_size=2).map(tuple)


@dataclass(frozen=True)
class Draw:
    """Random tensors of one type, from one seed."""

    dtype: torch.dtype
    seed: int

    def numbers(self) -> "Numbers":
        """Source of the tensors; a new one for each example."""
        return Numbers(self.dtype, torch.Generator().manual_seed(self.seed))


class Numbers:
    """Draws tensors one after another, every other one not contiguous, as slices and transposes are."""

    def __init__(self, dtype: torch.dtype, generator: torch.Generator) -> None:
        self.dtype = dtype
        self.generator = generator
        self._drawn = 0

    def randn(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """Normal numbers times `scale`."""
        drawn = (torch.randn(*shape, generator=self.generator, dtype=torch.float64) * scale).to(self.dtype)
        self._drawn += 1
        return drawn if self._drawn % 2 or drawn.dim() < 2 else drawn.mT.contiguous().mT

    def scores(self, *shape: int, kind: str) -> torch.Tensor:
        """Scores that are ordinary, or as extreme as a softmax may meet."""
        ordinary = self.randn(*shape)
        match kind:
            case "large":
                return ordinary * 1e4
            case "one above all":
                ordinary[..., 0] = 1e4
            case "one below all":
                ordinary[..., 0] = -1e4
            case "equal":
                return torch.full_like(ordinary, 1e4)
            case "tiny":
                return ordinary * 1e-4
            case "hidden":
                ordinary[..., 1:] = -torch.inf
        return ordinary


KINDS = ("ordinary", "large", "one above all", "one below all", "equal", "tiny", "hidden")
kinds = st.sampled_from(KINDS)
draws = st.builds(Draw, st.sampled_from(DTYPES), st.integers(0, 2**32 - 1))
precise = st.builds(Draw, st.sampled_from([torch.float64, torch.float32]), st.integers(0, 2**32 - 1))


def array(tensor: torch.Tensor) -> np.ndarray:
    """Arguments of the formulas."""
    return tensor.detach().double().numpy()


PRECISIONS_ALLOWED = 4
"""Measured, at most, in all these tests: 0.33 in float64, 0.41 in float32, 0.30 in float16, 0.29 in bfloat16."""


def assert_close(actual: torch.Tensor, expected: object, dtype: torch.dtype, *, scale: float = 1.0) -> None:
    """The result has this type, and is as close to the formula's as the type allows.

    scale: the size of the numbers on the way, by which rounding grows.
    """
    assert actual.dtype == dtype
    right = torch.as_tensor(np.asarray(expected), dtype=torch.float64)
    assert actual.shape == right.shape
    unit = torch.finfo(dtype).eps * max(1.0, scale)
    error = (actual.detach().double() - right).abs() / (1 + right.abs())
    error = torch.where(actual.double() == right, 0.0, error)  # infinities
    worst = float(error.max()) / unit if error.numel() else 0.0
    assert worst <= PRECISIONS_ALLOWED, f"{worst:.0f} times the precision of {dtype}"

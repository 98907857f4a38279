"""The tensors that graders draw: on the CPU, from an explicit generator, so that a case is the same everywhere."""

import copy
import zlib

import torch

DIGITS = 3
DRAWN_FROM = f"torch.Generator on the CPU, seeded with the CRC-32 of the grader's name; {DIGITS} decimals"


class Cases:
    """A generator of its own for each grader, seeded by the grader's name: adding one changes no other's cases.

    Numbers are rounded to three digits, so that no difference between two CPUs' instructions shows in them.
    """

    def __init__(self, name: str) -> None:
        self._generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        self._dtype = torch.float32

    def of(self, dtype: torch.dtype) -> "Cases":
        """The same generator, for tensors of this dtype: the numbers are those that would have come anyway."""
        cases = copy.copy(self)
        cases._dtype = dtype
        return cases

    def rand(self, *shape: int) -> torch.Tensor:
        """Numbers between 0.1 and 1.1, away from zero."""
        return self._even(shape).to(self._dtype)

    def randn(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """Numbers from the normal distribution with this standard deviation."""
        return self._bell(shape, scale).to(self._dtype)

    def _even(self, shape: tuple[int, ...]) -> torch.Tensor:
        drawn = torch.rand(shape, generator=self._generator, dtype=torch.float64)
        return (drawn + 0.1).round(decimals=DIGITS)

    def _bell(self, shape: tuple[int, ...], scale: float) -> torch.Tensor:
        drawn = torch.randn(shape, generator=self._generator, dtype=torch.float64)
        return (drawn * scale).round(decimals=DIGITS)

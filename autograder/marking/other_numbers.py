"""Other numbers for a hidden grader: what it asks can be released then, and its own cases stay hidden.

They are drawn by rules that stand in the release in the place of the numbers.
"""

import zlib
from collections.abc import Mapping
from typing import Any, TypeVar

import torch

from ..core.bench import Bench, Operation
from ..core.operations import Assemble, Build
from ..graders.cases import Cases
from ..handout.written_values import drawn
from ..student.reference import Reference

T = TypeVar("T")
Rule = list[float]


class Rules:
    """The rules by which the numbers of one example are drawn, and what each made."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: list[tuple[Rule, torch.Tensor]] = []

    def draw(self, shape: tuple[int, ...], *bell: float) -> torch.Tensor:
        """The next numbers, in float64: around a mean with a spread, or between 0.1 and 1.1."""
        rule: Rule = [zlib.crc32(f"{self._name}, released, {len(self._made)}".encode()), *bell]
        made = drawn(rule, shape)
        self._made.append((rule, made))
        return made

    def of(self, tensor: torch.Tensor) -> tuple[Rule, torch.dtype] | None:
        """The rule that makes this tensor, and the dtype that it was made in; None where it is no drawn one."""
        for rule, made in self._made:
            if made.shape != tensor.shape or made.numel() < 2:
                continue
            for dtype in (tensor.dtype, torch.float32):
                if torch.equal(made.to(dtype).to(tensor.dtype), tensor):
                    return rule, dtype
        return None


class OtherCases(Cases):
    """A grader's cases, drawn by released rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._dtype = torch.float32

    def _even(self, shape: tuple[int, ...]) -> torch.Tensor:
        return self._rules.draw(shape)

    def _bell(self, shape: tuple[int, ...], scale: float) -> torch.Tensor:
        return self._rules.draw(shape, 0.0, scale)


class OtherReference(Reference):
    """The solutions, whose instances have drawn parameters and not those that a seed gives them."""

    def __init__(self, solutions: Mapping[str, Any], rules: Rules) -> None:
        super().__init__(solutions)
        backend: Any = self._backend
        backend._backend = _Drawing(solutions, rules)  # below what computes in float64


class _Drawing(Bench):
    def __init__(self, solutions: Mapping[str, Any], rules: Rules) -> None:
        super().__init__(solutions)
        self._rules = rules

    def ask(self, operation: Operation[T]) -> T:
        given = super().ask(operation)
        if isinstance(operation, Assemble) or (isinstance(operation, Build) and not operation.plain):
            for parameter in self.instances[-1].parameters():
                own = parameter.data
                spread = float(own.std()) if own.numel() > 1 else 0.5
                mean = float(own.mean()) if own.numel() > 20 else 0.0
                bell = round(mean, 2), max(round(spread, 2), 0.1)
                parameter.data.copy_(self._rules.draw(tuple(own.shape), *bell))
        return given

"""What a face needs of whatever runs the code: a worker far away, or a bench in this process."""

from collections.abc import Mapping
from typing import Protocol

import torch

from ..sandbox.inside.arguments import Arguments
from ..sandbox.inside.bench import Kind, Observation, Target


class Backend(Protocol):
    """The operations of `sandbox.inside.bench.Bench`; its docstrings say what each does and raises."""

    def kind(self, name: str) -> Kind: ...

    def manual_seed(self, seed: int) -> None: ...

    def build(self, name: str, arguments: Arguments) -> int: ...

    def call(
        self, target: Target, arguments: Arguments, cotangents: tuple[torch.Tensor, ...] | None = None
    ) -> Observation: ...

    def named_parameters(self, instance: int) -> dict[str, torch.Tensor]: ...

    def load_parameters(self, instance: int, values: Mapping[str, torch.Tensor]) -> None: ...

    def to_dtype(self, instance: int, dtype: torch.dtype) -> None: ...

    def train(self, instance: int, mode: bool) -> None: ...

    def probe_device(self, target: Target, arguments: Arguments) -> str: ...

"""Tensors inside nested values that a student's code returned, which may be nested without end."""

from collections.abc import Iterator
from typing import Any

import torch

MAX_DEPTH = 8
MAX_TENSORS = 500
"""Of so many in one value notice is taken."""


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples and dicts, down to MAX_DEPTH."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item, depth + 1)

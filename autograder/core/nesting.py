"""Tensors inside nested values. Those that a student's code returned may be nested without end."""

from collections.abc import Callable, Iterator
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


def each(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with whatever is in its lists and tuples changed; for values of ours, which have an end."""
    if isinstance(value, list | tuple):
        return type(value)(each(item, change) for item in value)
    return change(value)

"""Tensors inside nested values. Those that a student's code returned may be nested without end."""

from collections.abc import Callable, Iterator, Sequence
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


def leaves_of(arg: Any) -> list[torch.Tensor]:
    """The tensors of an argument, alone or in a tuple, to which a gradient can flow."""
    return [one for one in tensors_in(arg) if one.is_floating_point() and one.requires_grad]


def at_argument(arg: Any, leaves: Sequence[torch.Tensor], found: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
    """An argument's gradient; those of a tuple's tensors in one row, 0 where none arrived at one of them."""
    if isinstance(arg, torch.Tensor) or all(one is None for one in found):
        return next(iter(found), None)
    pairs = zip(leaves, found, strict=True)
    return torch.cat([(torch.zeros_like(leaf) if one is None else one).flatten() for leaf, one in pairs])

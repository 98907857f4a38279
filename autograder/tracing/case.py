"""What is called when an answer is watched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class TellingCase:
    """What is called, and with what."""

    exercise: str
    arguments: tuple[Any, ...]
    built: tuple[Any, ...] | None = None
    """What an instance is built with, where a class is asked for."""
    parameters: Mapping[str, torch.Tensor] | None = None
    """The numbers that it gets then."""
    rules: Mapping[str, Mapping[str, Any]] | None = None
    """How these are written down in short, by the rules that make them."""
    through: tuple[str, ...] = ()
    """Of an instance that is not called itself: what `fed` calls in its place."""
    is_silent: bool = False
    """Whether no line is looked for where values are wrong, but only where it loses what is asked beside them."""
    untold: frozenset[str] = frozenset()
    """In which ways that `Located.how` has no line is told, because too often it would be a wrong one."""

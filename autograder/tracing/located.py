"""Where an answer goes wrong, as it was found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .reference import Reference
from .standing import Standing


@dataclass(frozen=True)
class Located:
    """The line, or the two lines, and what is known of them."""

    file: str
    lines: tuple[int, ...]
    """In the order in which they run: one; or two that do not fit each other, as where a mask is made and where it is
    used the other way round, or where what is right is made and where it should be used."""
    made: torch.Tensor | None
    """What is there; None where that is no tensor."""
    step: str
    """What the solution calls it; empty where that is not known."""
    expected: torch.Tensor | None
    """What should be there."""
    right_so_far: dict[str, int]
    """The solution's steps that were made as they should be by then, with their lines."""
    how: str
    """`mended`; `missing`: a step may be left out; `mask`: right the other way round; `swapped`: two in each other's
    places; `another`: right, but in the wrong place; `unused`: made and not used; `returned`: not the result;
    `of another kind`: not as many tensors as are asked for; `first of two`: a later line is wrong too; `one line`: all
    that goes in is right."""
    watched: frozenset[int]
    """The lines that make tensors."""
    is_inner: bool = False
    """Whether `made` is only on the way to what the line makes."""
    results: int | None = None
    """How many tensors are returned, where others are asked for."""
    wanted: int | None = None
    """How many should be."""


class Telling:
    """What stands beside a line of one run, once it is found."""

    def __init__(self, reference: Reference, standing: Standing) -> None:
        self._reference = reference
        self._standing = standing
        self._made = standing.made

    def located(
        self,
        lines: Iterable[int],
        file: str,
        until: int,
        how: str,
        made: torch.Tensor | None,
        expected: torch.Tensor | None = None,
        *,
        step: str = "",
        **more: Any,
    ) -> Located:
        """These lines. until: the steps that were made before this tensor are told with them."""
        own = [number for number, one in enumerate(self._made) if one.file == file]
        watched = frozenset(self._made[one].line for one in own)
        places = tuple(dict.fromkeys(lines))
        right_so_far = self._steps(until, file)
        return Located(file, places, made, step, expected, right_so_far, how, watched, **more)

    def is_inner(self, number: int, same_line: Sequence[int]) -> bool:
        """Whether the line goes on to make something else of it, be it the same numbers in another shape."""
        standing, shape = self._standing, self._standing.made[number].values.shape
        later = [one for one in same_line if number in standing.before[one]]
        return any(not standing.is_shaping(one) or standing.made[one].values.shape != shape for one in later)

    def _steps(self, until: int, file: str) -> dict[str, int]:
        steps: dict[str, int] = {}
        for number, known in enumerate(self._standing.known[:until]):
            for one in known if self._made[number].file == file else ():
                if step := self._reference.rights[one].step:
                    steps.setdefault(step, self._made[number].line)
        return steps

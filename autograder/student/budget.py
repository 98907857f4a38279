"""The time that one submission has, and how it is shared: what hangs must not take it from right answers beside it.

The first half is anyone's. What is not done by then is done in haste: only cells that exercises need, little time for
each cell and call, and for each exercise its share of what is left.
"""

import copy
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..course.notebook import CodeCell
from ..sandbox.limits import Limits

_IDLE_SECONDS = 10
_IN_HASTE_SECONDS = 2
_QUICK_SECONDS = 0.5

_PLAIN_LINE = re.compile(r"(?:import|from|def|async def|class|@)\b[^;]*|@[^;]*|\s.*|[\])}].*|#.*|\w+ = [^(;]*|")


class OutOfBudget(Exception):
    """This submission has had all the restarts, or all the time, that it gets."""


class OutOfRestarts(OutOfBudget):
    """The notebook ended Python more often than it is restarted."""


@dataclass(frozen=True)
class Patience:
    """How long one cell or call may take."""

    cpu_seconds: int
    idle_seconds: int
    wall_seconds: float


@dataclass
class _Clock:
    """Ends of the first half of the time, of all of it, and of the exercise's time, on the clock of time.monotonic."""

    half: float
    ends: float
    exercise_ends: float


class Budget:
    """What one submission has left. Waiting for a processor is not its fault, and taken from nothing."""

    def __init__(self, limits: Limits, exercises: Sequence[str]) -> None:
        """exercises: those that are to be examined."""
        self._limits = limits
        self._exercises = exercises
        self._begun = 0
        half = limits.submission_wall_seconds / 2
        self._clock = _Clock(time.monotonic() + half, time.monotonic() + 2 * half, time.monotonic() + 2 * half)
        self._restarts = limits.restarts
        self._restarts_in_haste = limits.restarts
        self.in_haste = False

    def begin_exercise(self) -> None:
        """What is spent from here on is the next exercise's."""
        now = time.monotonic()
        left = self._clock.ends - now
        self._clock.exercise_ends = now + left / max(len(self._exercises) - self._begun, 1)
        self._begun += 1

    def restart(self) -> None:
        """Takes one restart; raises OutOfRestarts."""
        if self._restarts < 0 and not self.in_haste:
            self.in_haste = True
            self._restarts = self._restarts_in_haste
        if self._restarts < 0:
            raise OutOfRestarts
        self._restarts -= 1

    def patience(self, cpu_seconds: int, *, with_cell: bool) -> Patience:
        """How long a cell or call may take that has so many seconds to compute if there is time; raises OutOfBudget."""
        now = time.monotonic()
        self.in_haste = self.in_haste or now > self._clock.half
        left = (self._clock.ends if with_cell or not self.in_haste else self._clock.exercise_ends) - now
        if left <= 0:
            raise OutOfBudget
        if self.in_haste:
            return Patience(min(cpu_seconds, _IN_HASTE_SECONDS - 1), _IN_HASTE_SECONDS, left)
        return Patience(cpu_seconds, _IDLE_SECONDS, left)

    def forgive(self, seconds: float) -> None:
        """Gives back what was spent waiting for a processor."""
        self._clock.half += seconds
        self._clock.ends += seconds
        self._clock.exercise_ends += seconds

    def apart(self) -> "Budget":
        """The budget of the same code in another worker: the same time, and one restart after its start."""
        budget = copy.copy(self)
        budget._restarts, budget._restarts_in_haste = 1, -1
        return budget

    def is_worth(self, cell: CodeCell, took: float | None) -> bool:
        """Whether a cell is run. took: how many seconds it did when it was run before; None where it was not."""
        if not self.in_haste or cell.is_ours or any(map(cell.defines, self._exercises)):
            return True
        if took is not None:
            return took < _QUICK_SECONDS
        return all(map(_PLAIN_LINE.fullmatch, cell.source.splitlines()))

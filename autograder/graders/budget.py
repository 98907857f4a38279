"""The time of one submission and how its exercises share it, and what their answers may cost the grading process.

A cell or call that hangs must not take the time of right answers. The first half of the time is shared by all. Work
that is not done by then is done in haste: only cells that exercises need, little time for each cell and call, and for
each exercise its share of the remaining time.
"""

import copy
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from ..core.faults import Unusable
from ..course.notebook import CodeCell
from ..sandbox.limits import Limits

_IDLE_SECONDS = 10
_HASTY_SECONDS = 2
QUICK_SECONDS = 0.5
"""A cell that takes longer is not run again in haste, nor in a worker for one exercise."""

_PLAIN_LINE = re.compile(r"(?:import|from|def|async def|class|@)\b[^;]*|@[^;]*|\s.*|[\])}].*|#.*|\w+ = [^(;]*|")


class OutOfBudget(Exception):
    """The submission has used up its restarts or its time."""


class OutOfRestarts(OutOfBudget):
    """The notebook ended Python more often than it is restarted."""


class Patience(TypedDict):
    """Limits for one cell or call, as `Worker.exchange` takes them."""

    cpu_seconds: int
    idle_seconds: int
    wall_seconds: float


@dataclass
class _Deadlines:
    """Ends of the first half of the time, of all of it, and of the exercise's time, as time.monotonic() counts."""

    half: float
    whole: float
    exercise: float


class Budget:
    """The time and restarts that one submission has left. Waiting for a processor costs nothing."""

    def __init__(self, limits: Limits, exercises: Sequence[str]) -> None:
        """exercises: those that will be tested."""
        self._limits = limits
        self._exercises = exercises
        self._begun = 0
        now, seconds = time.monotonic(), limits.submission_wall_seconds
        self._deadlines = _Deadlines(now + seconds / 2, now + seconds, now + seconds)
        self._restarts = limits.restarts
        self._hasty_restarts = limits.restarts
        self.in_haste = False

    def begin_exercise(self) -> None:
        """Charge the time from now on to the next exercise."""
        now = time.monotonic()
        share = (self._deadlines.whole - now) / max(len(self._exercises) - self._begun, 1)
        self._deadlines.exercise = now + share
        self._begun += 1

    def restart(self) -> None:
        """Use up one restart; raises OutOfRestarts."""
        if self._restarts < 0 and not self.in_haste:
            self.in_haste = True
            self._restarts = self._hasty_restarts
        if self._restarts < 0:
            raise OutOfRestarts
        self._restarts -= 1

    def patience(self, cpu_seconds: int, *, with_cell: bool) -> Patience:
        """Return the limits of a cell, or of a call, that may compute for some seconds if there is time.

        Raises OutOfBudget.
        """
        now = time.monotonic()
        self.in_haste = self.in_haste or now > self._deadlines.half
        end = self._deadlines.whole if with_cell or not self.in_haste else self._deadlines.exercise
        if end <= now:
            raise OutOfBudget
        if self.in_haste:
            cpu_seconds = min(cpu_seconds, _HASTY_SECONDS - 1)
        idle_seconds = _HASTY_SECONDS if self.in_haste else _IDLE_SECONDS
        return Patience(cpu_seconds=cpu_seconds, idle_seconds=idle_seconds, wall_seconds=end - now)

    def forgive(self, seconds: float) -> None:
        """Extend the deadlines by time that is not charged: waiting for a processor, and calls with large inputs."""
        self._deadlines.half += seconds
        self._deadlines.whole += seconds
        self._deadlines.exercise += seconds

    def apart(self) -> "Budget":
        """Return the budget of the same code in another worker: the same time, and one restart after its start."""
        budget = copy.copy(self)
        budget._restarts, budget._hasty_restarts = 1, -1
        return budget

    def is_worth(self, cell: CodeCell, seconds: float | None) -> bool:
        """Return whether to run a cell. seconds: the time that it took before; None if it has not run."""
        if not self.in_haste or cell.is_ours or any(map(cell.defines, self._exercises)):
            return True
        if seconds is not None:
            return seconds < QUICK_SECONDS
        return all(map(_PLAIN_LINE.fullmatch, cell.source.splitlines()))


MAX_RESPONSE_BYTES = 32 << 20
"""Limit for tensors: sixty times the bytes of the largest right answers to an exercise."""
MAX_RESPONSE_SECONDS = 10.0
"""Limit for the grading process's CPU time: a hundred times what right answers take."""


class ResponseBudget:
    """Limits what the answers to one exercise cost the grading process together.

    `core.packing` limits each single answer, and the number of exercises limits the cost of a submission.
    """

    def __init__(self, max_bytes: int = MAX_RESPONSE_BYTES, max_cpu_seconds: float = MAX_RESPONSE_SECONDS) -> None:
        self._max_bytes = max_bytes
        self._max_cpu_seconds = max_cpu_seconds
        self.renew()

    def renew(self) -> None:
        """Begin with the next exercise, which has the full budget again."""
        self._bytes = 0
        self._began = time.thread_time()

    def take(self, size: int) -> None:
        """Count the bytes of tensors in an answer."""
        self._bytes += size

    def check(self) -> None:
        """Raise Unusable if nothing is left, so that the exercise sends no more requests."""
        if self._bytes > self._max_bytes:
            raise Unusable("Not run: the results of the calls before are far larger than this exercise requires.")
        if time.thread_time() - self._began > self._max_cpu_seconds:
            raise Unusable(
                "Not run: checking the results of the calls before took far longer than checking right results."
            )

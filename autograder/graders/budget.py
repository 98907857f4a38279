"""Limits on the time of one submission, its division among exercises, and limits on reading the worker's answers.

A cell or call that hangs must not take the time of right answers. All exercises share the first half of the time. After
that, the rest is done in haste: only cells that exercises need are run, each cell and call has little time, and each
exercise has an equal share of the remaining time.
"""

import copy
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from ..core.observation import Unusable
from ..course.notebook import CodeCell
from ..sandbox.limits import Limits

_IDLE_SECONDS = 10
_HASTY_SECONDS = 2
QUICK_SECONDS = 0.5
"""Limit for cells in haste, and in a separate worker: a cell that took longer before is not run there."""

_PLAIN_LINE = re.compile(r"(?:import|from|def|async def|class|@)\b[^;]*|@[^;]*|\s.*|[\])}].*|#.*|\w+ = [^(;]*|")


class OutOfBudget(Exception):
    """Raised if a submission has used up its restarts or its time."""


class OutOfRestarts(OutOfBudget):
    """Raised if a submission has lost more workers than may be replaced."""


class Patience(TypedDict):
    """Limits in seconds for one cell or call: arguments of `Worker.exchange`."""

    cpu_seconds: int
    idle_seconds: int
    wall_seconds: float


@dataclass
class _Deadlines:
    """The ends of the submission's first half, of its whole time and of the exercise's time, by `time.monotonic()`."""

    half: float
    whole: float
    exercise: float


class Budget:
    """The time and restarts that one submission has left. Time spent waiting for a processor is not counted."""

    def __init__(self, limits: Limits, exercises: Sequence[str]) -> None:
        """exercises: names of the exercises that will be tested."""
        self._limits = limits
        self._exercises = exercises
        self._begun = 0
        now, seconds = time.monotonic(), limits.submission_wall_seconds
        self._deadlines = _Deadlines(now + seconds / 2, now + seconds, now + seconds)
        self._restarts = limits.restarts
        self._hasty_restarts = limits.restarts
        self.in_haste = False

    def begin_exercise(self) -> None:
        """Begin with the next exercise, and compute its share of the remaining time."""
        now = time.monotonic()
        share = (self._deadlines.whole - now) / max(len(self._exercises) - self._begun, 1)
        self._deadlines.exercise = now + share
        self._begun += 1

    def restart(self) -> None:
        """Count one restart of a worker; raises OutOfRestarts if there are none left."""
        if self._restarts < 0 and not self.in_haste:
            self.in_haste = True
            self._restarts = self._hasty_restarts
        if self._restarts < 0:
            raise OutOfRestarts
        self._restarts -= 1

    def patience(self, cpu_seconds: int, *, with_cell: bool) -> Patience:
        """Return the limits for the next cell or call; raises OutOfBudget if there is no time left.

        cpu_seconds: its usual limit. with_cell: True for a cell.
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
        """Extend all deadlines by time that does not count: waiting for a processor, and calls with large inputs."""
        self._deadlines.half += seconds
        self._deadlines.whole += seconds
        self._deadlines.exercise += seconds

    def apart(self) -> "Budget":
        """Return a budget, with the same time, for running the same code in another worker.

        That worker may be restarted twice.
        """
        budget = copy.copy(self)
        budget._restarts, budget._hasty_restarts = 2, -1
        return budget

    def is_worth(self, cell: CodeCell, seconds: float | None) -> bool:
        """Return whether to run a cell, which in haste may be left out.

        seconds: the time that it took before; None if it has not run.
        """
        if not self.in_haste or cell.is_ours or any(map(cell.defines, self._exercises)):
            return True
        if seconds is not None:
            return seconds < QUICK_SECONDS
        return all(map(_PLAIN_LINE.fullmatch, cell.source.splitlines()))


MAX_RESPONSE_BYTES = 32 << 20
"""Most bytes of tensors in all answers to one exercise: sixty times the most of a right answer."""
MAX_RESPONSE_SECONDS = 10.0
"""Limit for the grading process's CPU seconds for one exercise: a hundred times the time for a right answer."""


class ResponseBudget:
    """Limits the bytes and the CPU time of the grading process for all of a worker's answers about one exercise.

    `core.packing` limits each single answer.
    """

    def __init__(self, max_bytes: int = MAX_RESPONSE_BYTES, max_cpu_seconds: float = MAX_RESPONSE_SECONDS) -> None:
        self._max_bytes = max_bytes
        self._max_cpu_seconds = max_cpu_seconds
        self.renew()

    def renew(self) -> None:
        """Begin with the next exercise, for which the full limits hold again."""
        self._bytes = 0
        self._began = time.thread_time()

    def take(self, size: int) -> None:
        """Charge the bytes of the tensors in a worker's reply to the budget."""
        self._bytes += size

    def check(self) -> None:
        """Raise Unusable if a limit is exceeded, so that the exercise sends no more requests."""
        if self._bytes > self._max_bytes:
            raise Unusable("Not run: the results of the calls before are far larger than this exercise requires.")
        if time.thread_time() - self._began > self._max_cpu_seconds:
            raise Unusable(
                "Not run: checking the results of the calls before took far longer than checking right results."
            )

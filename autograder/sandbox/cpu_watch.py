"""What a worker does with its time, seen from outside: it computes, waits for a processor, or waits for something else.

A machine that is merely busy is not the student's fault: time in the queue for a processor counts for nothing. A worker
that neither computes nor stands in that queue waits for something that may never come.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .processes import cpu_seconds, turns_of


@dataclass(frozen=True)
class _Look:
    """What was seen at one moment: seconds, of which `computed` are those of threads that have ended too."""

    at: float
    computed: float
    threads: dict[int, tuple[float, float]]


class Pace:
    """Looked at now and then while an answer is waited for; what is quick is never looked at."""

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        """processes: the ids of those that are watched, as this process sees them."""
        self._processes = processes
        self._last: _Look | None = None
        self.computed = 0.0
        """CPU seconds since the first look, of all threads: the limit that a worker has itself it can put off."""
        self.idle = 0.0
        """Seconds in which it waited for something else than a processor; 0 where /proc is not to be read."""
        self.queued = 0.0
        """Seconds in which it could have computed, and others did."""

    def look(self) -> float:
        """Takes note of what was done since the last look; returns the seconds in the queue since then."""
        ids = list(self._processes())
        threads = {thread: turns for pid in ids for thread, turns in turns_of(pid).items()}
        now = _Look(time.monotonic(), sum(map(cpu_seconds, ids)), threads)
        before, self._last = self._last, now
        if before is None or not ids:
            return 0.0
        passed, computed = now.at - before.at, now.computed - before.computed
        queued = min(_kept_waiting(before, now), max(passed - computed, 0.0))
        self.computed += computed
        self.idle += max(passed - computed - queued, 0.0)
        self.queued += queued
        return queued


def _kept_waiting(before: _Look, now: _Look) -> float:
    """The most seconds that others kept any one thread waiting: not those in which its own siblings computed."""
    computed = now.computed - before.computed
    waits = [0.0]
    for thread, (ran, waited) in now.threads.items():
        ran_before, waited_before = before.threads.get(thread, (0.0, 0.0))
        siblings = max(computed - (ran - ran_before), 0.0)
        waits.append(waited - waited_before - siblings)
    return max(waits)

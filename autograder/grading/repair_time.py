"""The CPU time that the search for repairs of one submission may take, in this process and in the workers."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MAX_SECONDS = 15.0
"""CPU seconds for one submission."""
MAX_EXERCISE_SECONDS = 8.0
"""CPU seconds for one exercise."""
MAX_WALL_SECONDS = 40.0
"""They end the search of one exercise in which the code waits, or on a machine that is far too busy."""


class RepairTime:
    """The time that one submission has left."""

    def __init__(self, worker_seconds: Callable[[], float]) -> None:
        """worker_seconds: returns the CPU seconds of all workers so far."""
        self._worker_seconds = worker_seconds
        self._end = self._now() + MAX_SECONDS
        self.begin_exercise()

    def begin_exercise(self) -> None:
        """Charge the time from now on to the next exercise."""
        self._exercise_end = min(self._now() + MAX_EXERCISE_SECONDS, self._end)
        self._wall_end = time.monotonic() + MAX_WALL_SECONDS

    @property
    def is_over(self) -> bool:
        """True if the exercise, or the submission, has no time left."""
        return self._now() > self._exercise_end or time.monotonic() > self._wall_end

    @property
    def is_half_over(self) -> bool:
        """True if half of the exercise's time is used up."""
        return self._now() > self._exercise_end - MAX_EXERCISE_SECONDS / 2 or self.is_over

    @property
    def is_short(self) -> bool:
        """True if the exercise has less time than others, because earlier ones used up the submission's."""
        return self._exercise_end >= self._end

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Charge no time."""
        begun = self._now(), time.monotonic()
        yield
        seconds = self._now() - begun[0]
        self._end += seconds
        self._exercise_end += seconds
        self._wall_end += time.monotonic() - begun[1]

    def _now(self) -> float:
        return time.thread_time() + self._worker_seconds()

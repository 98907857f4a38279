"""Limit of the CPU time of a block of code, which may hold a loop that never ends."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_AGAIN = 0.05
"""Seconds until OverLimit is raised again: the code that is tried runs where every exception counts as its own."""


class OverLimit(BaseException):
    """The limit of CPU time is exceeded."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise OverLimit in the block, and at its end, once this process used so much CPU time. For the main thread."""
    passed: list[int] = []

    def end(number: int, frame: Any) -> None:
        passed.append(number)
        raise OverLimit

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    if passed:
        raise OverLimit

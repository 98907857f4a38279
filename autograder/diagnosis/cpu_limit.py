"""Ends what never ends: two mistakes that were never tried together may make a loop without an end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_AGAIN = 0.05
"""Seconds until what was caught is raised again: code that is tried is run where every exception counts as its own."""


class OverLimit(BaseException):
    """More CPU time was used than is given."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raises OverLimit in the block, and at its end, once this process took so long. For the main thread."""
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

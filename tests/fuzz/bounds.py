"""Bounds on the cost of one input for the trusted side."""

import faulthandler
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEGABYTES = 1000
"""Above what the process holds before. nbformat makes 700 of a notebook of 16 MB in which each line is empty."""
CPU_SECONDS = 20
WALL_SECONDS = 300


class TooMuch(BaseException):
    """An input cost more than it may. No `except Exception` takes this for a fault of the input."""


@contextmanager
def bounded() -> Iterator[None]:
    """Raises TooMuch where what is done inside takes more memory or CPU time; what waits forever ends the process."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = _kilobytes("VmRSS")
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    faulthandler.dump_traceback_later(WALL_SECONDS, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    grown = (_kilobytes("VmHWM") - before) >> 10
    if grown > MEGABYTES:
        raise TooMuch(f"{grown} MB of memory")


def _too_long(number: int, frame: object) -> None:
    raise TooMuch(f"{CPU_SECONDS} seconds of computing")


def _kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1])

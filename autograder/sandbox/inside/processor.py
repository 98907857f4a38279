"""The processors there are, and keeping a process to one of them.

A grader and a worker take turns: one always waits for the other. On two processors each turn wakes a sleeping one,
which costs more than most of what a turn does, and finds its caches cold.
"""

import contextlib
import os


def usable() -> list[int]:
    """The numbers of the processors that this process may use; none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def count() -> int:
    """How many there are to use."""
    return len(usable()) or os.cpu_count() or 1


def keep_to(core: int | None) -> None:
    """Keeps this process, and what it starts, to a processor; where that cannot be had, it is only slower."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})

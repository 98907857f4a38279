"""Keeping a process to one processor.

A marking process and a worker take turns: one always waits for the other. On two processors each turn wakes a sleeping
one, which costs more than most of what a turn does, and finds its caches cold.
"""

import contextlib
import os


def keep_to(core: int | None) -> None:
    """Keeps this process, and what it starts, to a processor; where that cannot be had, it is only slower."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})

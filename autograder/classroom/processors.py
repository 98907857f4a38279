"""The processors that marking processes are spread over."""

import os


def usable() -> list[int]:
    """The numbers of the processors that this process may use; none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def count() -> int:
    """How many there are to use."""
    return len(usable()) or os.cpu_count() or 1


def in_turn() -> list[int]:
    """Those that may be used, beginning with one that this process's id picks."""
    cores = usable()
    first = os.getpid() % len(cores) if cores else 0
    return cores[first:] + cores[:first]

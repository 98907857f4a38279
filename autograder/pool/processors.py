"""Processors that grading processes are spread over."""

import os


def usable() -> list[int]:
    """Return the numbers of the processors that this process may use; none if the system does not report them."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def count() -> int:
    """Return the number of processors that this process may use."""
    return len(usable()) or os.cpu_count() or 1


def in_turn() -> list[int]:
    """Return the usable processors, beginning with one that depends on this process's id."""
    cores = usable()
    first = os.getpid() % len(cores) if cores else 0
    return cores[first:] + cores[:first]

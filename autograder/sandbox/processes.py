"""What this process sees of others, in /proc; nothing where that is not to be read."""

import contextlib
import os
import re
import time
from pathlib import Path

_NANOSECOND = 1e-9
_MEMORY = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)


def children(pid: int) -> list[int]:
    """The ids of the processes that this one has started."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def threads(pid: int) -> int:
    """How many threads it has."""
    try:
        found = re.search(r"^Threads:\s(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def cpu_seconds(pid: int) -> float:
    """The CPU time that it has used, in all its threads, those that have ended too."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """Return the bytes of memory that a process holds and that belong to no file: private and shared memory.

    A process whose first thread has ended shows its memory only in the status of its other threads.
    """
    return _memory_in(Path(f"/proc/{pid}")) or max(map(_memory_in, Path(f"/proc/{pid}/task").glob("*")), default=0)


def _memory_in(folder: Path) -> int:
    try:
        status = (folder / "status").read_text()
    except OSError:
        return 0
    return sum(int(kilobytes) for kilobytes in _MEMORY.findall(status)) * 1024


def cpu_clock(pid: int) -> float:
    """The CPU time of a process and of all threads that it has had, to the nanosecond: clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def turns_of(pid: int) -> dict[int, tuple[float, float]]:
    """By its threads' ids, the seconds that each has run and those that it has waited for a processor."""
    turns = {}
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError):
            ran, waited, _ = map(int, file.read_text().split())
            turns[int(file.parent.name)] = (ran * _NANOSECOND, waited * _NANOSECOND)
    return turns

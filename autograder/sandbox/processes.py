"""Other processes as /proc shows them: their children, threads and memory, and what they do with their time.

Where /proc cannot be read there are no children, threads and seconds.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_NANOSECOND = 1e-9
_MEMORY = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_THREADS = re.compile(r"^Threads:\s(\d+)", re.MULTILINE)


def children(pid: int) -> list[int]:
    """Return the ids of the processes that a process has started."""
    return [int(child) for child in _read(Path(f"/proc/{pid}/task/{pid}/children")).split()]


def threads(pid: int) -> int:
    """Return the number of a process's threads."""
    return sum(map(int, _THREADS.findall(_read(Path(f"/proc/{pid}/status")))))


def memory(pid: int) -> int:
    """Return the bytes of memory that a process holds and that belong to no file: private and shared memory.

    A process whose first thread has ended shows its memory only in the status of its other threads.
    """
    process = Path(f"/proc/{pid}")
    return _memory_in(process) or max(map(_memory_in, (process / "task").glob("*")), default=0)


def _memory_in(folder: Path) -> int:
    return sum(map(int, _MEMORY.findall(_read(folder / "status")))) * 1024


def cpu_clock(pid: int) -> float:
    """Return the CPU time of a process and all threads it has had, to the nanosecond: see clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def ended_seconds(pid: int) -> float:
    """Return the CPU time of the children of a process that have ended."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")  # the name of a process may be any bytes
    except OSError:
        return ""


def _thread_seconds(pid: int) -> dict[int, tuple[float, float]]:
    """Return for each thread the seconds that it ran, and those that it waited for a processor."""
    seconds = {}
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError):
            ran, waited, _ = map(int, file.read_text().split())
            seconds[int(file.parent.name)] = (ran * _NANOSECOND, waited * _NANOSECOND)
    return seconds


class CpuWatch:
    """Watches whether processes compute, wait for a processor, or wait for something else.

    A busy machine is not the student's fault, so time in the queue for a processor does not count. A worker that
    neither computes nor waits in that queue waits for something that may never come.
    """

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        """processes: returns the ids of the watched processes, as this process sees them."""
        self._processes = processes
        self._last: tuple[float, float, dict[int, tuple[float, float]]] | None = None
        """Time, CPU seconds and seconds of each thread at the last poll."""
        self.computed = 0.0
        """CPU seconds of all threads since the first poll. A worker cannot change this, unlike its own limit."""
        self.idle = 0.0
        """Seconds in which the processes waited for something else than a processor."""
        self.queued = 0.0
        """Seconds in which they could have computed while others did."""

    def poll(self) -> float:
        """Measure the time since the last poll, and return the seconds of it in the queue for a processor."""
        pids = list(self._processes())
        threads = {thread: seconds for pid in pids for thread, seconds in _thread_seconds(pid).items()}
        now, cpu, last = time.monotonic(), sum(map(cpu_clock, pids)), self._last
        self._last = now, cpu, threads
        if last is None or not pids:
            return 0.0
        passed, computed = now - last[0], cpu - last[1]
        queued = min(_longest_wait(last[2], threads, computed), max(passed - computed, 0.0))
        self.computed += computed
        self.idle += max(passed - computed - queued, 0.0)
        self.queued += queued
        return queued


def _longest_wait(
    before: dict[int, tuple[float, float]], now: dict[int, tuple[float, float]], computed: float
) -> float:
    """Return the most seconds for which other processes kept one thread waiting; its own siblings do not count."""
    waits = [0.0]
    for thread, (ran, waited) in now.items():
        ran_before, waited_before = before.get(thread, (0.0, 0.0))
        siblings = max(computed - (ran - ran_before), 0.0)
        waits.append(waited - waited_before - siblings)
    return max(waits)

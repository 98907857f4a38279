"""Limits on a worker's CPU time, memory, files and threads. See setrlimit(2)."""

import ctypes
import mmap
import resource
import sys
from dataclasses import dataclass

_SMALL_FILE_BYTES = 4 << 10
_M_MMAP_THRESHOLD, _LARGE_PIECE_BYTES = -3, 1 << 19  # see mallopt(3)
_THREAD_FACTOR = 4  # the trusted side ends a worker with too many threads; the kernel allows this many times as many
_LAST_SECONDS = 5  # after SIGXCPU, which code can catch, until the kernel kills


@dataclass(frozen=True)
class WorkerLimits:
    """Limits of one worker: see `sandbox.limits`."""

    cpu_seconds: int
    memory_bytes: int
    file_bytes: int
    open_files: int
    threads: int


def limit(limits: WorkerLimits, *, cuda: bool, counts_threads: bool) -> None:
    """Apply the limits to this process, for good.

    counts_threads: the kernel counts the threads of this sandbox separately from the user's others.
    """
    fixed = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_MEMLOCK: 0,
    }
    if counts_threads:
        fixed[resource.RLIMIT_NPROC] = _THREAD_FACTOR * limits.threads
    if sys.platform == "linux" and not cuda:  # CUDA maps more address space than any limit would allow
        fixed[resource.RLIMIT_AS] = _address_space() + limits.memory_bytes
    for kind, most in fixed.items():
        allowed = _at_most(kind, most)
        resource.setrlimit(kind, (allowed, allowed))
    hard = _at_most(resource.RLIMIT_CPU, limits.cpu_seconds + _LAST_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (max(hard - _LAST_SECONDS, 1), hard))


def limit_memory(spare_bytes: int) -> None:
    """Limit the address space of this process to what it has mapped now and `spare_bytes` more, for good.

    Its files are limited to a few kilobytes, so that they cannot hold what does not fit. Large blocks of memory are
    returned to the system when they are freed, so that they leave no holes.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (_SMALL_FILE_BYTES, _SMALL_FILE_BYTES))
    if sys.platform == "linux":
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_PIECE_BYTES)
        most = _at_most(resource.RLIMIT_AS, _address_space() + spare_bytes)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def allow_cpu(seconds: int) -> None:
    """End this process by SIGXCPU once it has used this much more CPU time, within the limit set by `limit`."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (min(soft, hard - _LAST_SECONDS), hard))


def _at_most(kind: int, most: int) -> int:
    """Return this limit, or this process's own limit if that is less."""
    _, hard = resource.getrlimit(kind)
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def _address_space() -> int:
    """Return the bytes of address space that this process has mapped, without /proc.

    The search finds the least limit at which one more page can be mapped.
    """
    before = resource.getrlimit(resource.RLIMIT_AS)
    low, high = 0, 1 << 47
    while high - low > mmap.PAGESIZE:
        middle = (low + high) // 2
        if before[1] != resource.RLIM_INFINITY and middle > before[1]:
            high = middle
            continue
        resource.setrlimit(resource.RLIMIT_AS, (middle, before[1]))
        try:
            mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
            high = middle
        except OSError:
            low = middle
    resource.setrlimit(resource.RLIMIT_AS, before)
    return high

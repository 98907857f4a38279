"""What the operating system keeps a worker from doing.

This is the place for it, called once in every worker before any of the student's code runs. For now a worker is
limited in CPU time, memory and file size, and nothing more: the level is `none`, and every mark says so.
"""

import resource
from dataclasses import dataclass
from pathlib import Path

LEVEL = "none"

_PAGE = resource.getpagesize()
_LAST_SECONDS = 5  # after SIGXCPU, which code can catch, the kernel kills


@dataclass(frozen=True)
class Limits:
    """What one worker may use. Seconds of CPU, bytes of memory and of any one file."""

    cpu_seconds: int
    memory_bytes: int
    file_bytes: int


def confine(limits: Limits, *, cuda: bool) -> None:
    """Applies the limits to this process, for good."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_bytes, limits.file_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + _LAST_SECONDS))
    if not cuda:  # CUDA maps more address space than any limit would allow
        room = _address_space() + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (room, room))


def allow_cpu(seconds: int) -> None:
    """Ends this process by SIGXCPU once it has used this much more CPU time. Within the limit set by `confine`."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (min(soft, hard - _LAST_SECONDS), hard))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE

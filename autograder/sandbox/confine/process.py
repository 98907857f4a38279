"""Irreversible settings of a process: privileges, processor, end with the parent, and limits as in setrlimit(2).

The limits are on a worker's CPU time, memory, files and threads.
"""

import contextlib
import ctypes
import mmap
import os
import resource
import signal
import sys
from dataclasses import dataclass

_CAPABILITY_VERSION_3 = 0x20080522
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _DROP_FROM_BOUNDING_SET, _SET_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
_LAST_POSSIBLE_CAPABILITY = 63
_SMALL_FILE_BYTES = 4 << 10
_M_MMAP_THRESHOLD, _LARGE_PIECE_BYTES = -3, 1 << 19  # see mallopt(3)
_THREAD_FACTOR = 4  # the trusted side ends a worker with too many threads; the kernel allows this many times as many
_LAST_SECONDS = 5  # after SIGXCPU, which code can catch, until the kernel kills


class _Header(ctypes.Structure):
    """struct __user_cap_header_struct, see capset(2)."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    """struct __user_cap_data_struct."""

    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def call_kernel(name: str, *arguments: object) -> None:
    """Call a function of the C library by name; raises OSError unless it returns 0."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def drop_privileges() -> None:
    """Drop every Linux capability for good, and hide this process from others of the same user; raises OSError.

    From then on, a process that root started is an ordinary process.
    """
    for capability in range(_LAST_POSSIBLE_CAPABILITY + 1):
        with contextlib.suppress(OSError):  # the kernel refuses this to a process that has no capability to drop
            call_kernel("prctl", _DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
    call_kernel("capset", ctypes.byref(_Header(_CAPABILITY_VERSION_3, 0)), (_Sets * 2)())
    forbid_new_privileges()
    set_visible(False)


def forbid_new_privileges() -> None:
    """Keep this process from gaining privileges by running another program; raises OSError."""
    call_kernel("prctl", _SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def set_visible(is_visible: bool) -> None:
    """Set whether other processes of this user can read this one's /proc, in which the trusted side watches workers."""
    call_kernel("prctl", _SET_DUMPABLE, int(is_visible), 0, 0, 0)


def end_with_parent() -> None:
    """Let the kernel kill this process when the thread that forked it ends; Linux only."""
    call_kernel("prctl", _SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Let the kernel make this process the parent of descendants whose own parent has ended; Linux only."""
    call_kernel("prctl", _SET_SUBREAPER, 1, 0, 0, 0)


def keep_to_processor(core: int | None) -> None:
    """Keep this process, and those it starts, on one processor, if the system can do that. core: its number, or None.

    A grading process and its worker take turns, so one always waits for the other. On two processors each turn would
    wake a sleeping processor with cold caches, which takes longer than most turns.
    """
    if core is not None and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})


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

    cuda: leave out the limit on address space. counts_threads: limit the threads as well; only possible if the kernel
    counts those in the sandbox separately from the user's other threads.
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
    """Limit the address space of this process, for good, to `spare_bytes` more than it has mapped now.

    Also limit each of its files to a few kilobytes, so that files cannot replace memory. Large blocks of memory are
    returned to the system when they are freed, so that memory does not fragment.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (_SMALL_FILE_BYTES, _SMALL_FILE_BYTES))
    if sys.platform == "linux":
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_PIECE_BYTES)
        most = _at_most(resource.RLIMIT_AS, _address_space() + spare_bytes)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def allow_cpu(seconds: int) -> None:
    """End this process by SIGXCPU once it has used `seconds` more of CPU time, within the limit set by `limit`."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (min(soft, hard - _LAST_SECONDS), hard))


def _at_most(kind: int, most: int) -> int:
    """Return the smaller of `most` and this process's hard limit. kind: a constant such as RLIMIT_AS."""
    _, hard = resource.getrlimit(kind)
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def _address_space() -> int:
    """Return the bytes of address space that this process has mapped, without reading /proc.

    A binary search finds the least limit at which one more page can be mapped.
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

"""Self-test of the confinement: a worker, before any student's code runs, attempts actions that must be denied."""

import ctypes
import os
import resource
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

_PTRACE_SEIZE, _PRIVATE_SEGMENT = 0x4206, 0  # seizing, unlike attaching, does not stop the other


@dataclass(frozen=True)
class Bait:
    """Targets of the attempts, which the trusted side provides: a file, a port, a socket and a process id."""

    file: str
    port: int
    socket: str
    pid: int


def attempt_all(bait: Bait) -> dict[str, Any]:
    """Return the number of attempts, and the names of those that succeeded: none if the confinement holds."""
    outcomes = {name: _works(attempt) for name, attempt in _attempts(bait)}
    return {"tried": len(outcomes), "succeeded": [name for name, worked in outcomes.items() if worked]}


def _works(attempt: Callable[[], object]) -> bool:
    try:
        return attempt() is not False
    except (OSError, ValueError):
        return False


def _attempts(bait: Bait) -> Iterator[tuple[str, Callable[[], object]]]:
    libc = ctypes.CDLL(None)
    file, parent = Path(bait.file), os.getppid()
    yield "reading a file", file.read_bytes
    yield "writing into a file", lambda: file.write_bytes(b"overwritten")
    yield "cutting a file short", lambda: os.truncate(file, 0)
    # These two may seem to work: the trusted side checks whether they did.
    yield "changing a file's mode", lambda: _checked_outside(partial(file.chmod, 0o777))
    yield "changing a file's times", lambda: _checked_outside(partial(os.utime, file, (0, 0)))
    yield "listing a folder", lambda: list(file.parent.iterdir())
    yield "making a file", lambda: file.with_name("made").write_bytes(b"")
    yield "deleting a file", file.unlink
    yield "connecting to a port", lambda: socket.create_connection(("127.0.0.1", bait.port), timeout=1)
    yield "connecting to a socket", lambda: socket.socket(socket.AF_UNIX).connect(bait.socket)
    yield "opening a socket", socket.socket
    yield "starting a process", _fork
    yield "running a program", lambda: os.posix_spawn("/bin/true", ["true"], {})
    for name, pid in (("the fork server", parent), ("the grader", bait.pid)):
        yield f"a signal to {name}", partial(os.kill, pid, 0)
        yield f"the limits of {name}", partial(resource.prlimit, pid, resource.RLIMIT_CPU)
        yield f"the environment of {name}", Path(f"/proc/{pid}/environ").read_bytes
        yield f"the debugging of {name}", partial(_debug, libc, pid)
    yield "the processors of the fork server", lambda: os.sched_setaffinity(parent, {0})
    yield "shared memory", lambda: libc.shmget(_PRIVATE_SEGMENT, 4096, 0o600) != -1
    yield "a file in memory", lambda: os.memfd_create("made")


def _checked_outside(attempt: Callable[[], None]) -> bool:
    attempt()
    return False


def _debug(libc: ctypes.CDLL, pid: int) -> bool:
    return bool(libc.ptrace(_PTRACE_SEIZE, pid, None, None) == 0)


def _fork() -> bool:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return True

"""Temporary folders. If a process is killed and leaves one behind, a later run recognizes that, and removes the folder.

The process holds a lock on a file in its folder. The system releases the lock when the process ends in any way.
"""

import contextlib
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .confine import scratch

_LOCK = ".owner"
_OURS = re.compile(r"(?:autograder|bait|build)-[a-z0-9_]{8}")
_ATTEMPTS = 10

_locks: dict[Path, int] = {}
"""For each temporary folder of this process, the descriptor of its lock file."""


def make(prefix: str) -> Path:
    """Make a temporary folder, which belongs to this process until it ends or calls `remove`; raises OSError."""
    for _ in range(_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / _LOCK).lstat()
        except (BlockingIOError, FileNotFoundError):  # another run took it for abandoned, and removes it
            os.close(lock)
            continue
        _locks[folder] = lock
        return folder
    raise OSError("no temporary folder could be kept")


def remove(folder: Path) -> None:
    """Remove a temporary folder of this process with all its content, unless it is removed already; raises OSError."""
    lock = _locks.pop(folder, None)
    if lock is not None:
        try:
            scratch.wipe(str(folder))
        finally:
            os.close(lock)


@contextmanager
def held(prefix: str) -> Iterator[Path]:
    """Make an empty folder within a new temporary folder, and remove both at the end of the block."""
    folder = make(prefix)
    try:
        inner = folder / "held"
        inner.mkdir()
        yield inner
    finally:
        remove(folder)


def clear() -> None:
    """Remove the temporary folders that earlier runs of this user left behind, and nothing of other users."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if _OURS.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _clear(Path(entry.path))


def _clear(folder: Path) -> None:
    """Remove a temporary folder of this user; raises OSError if a process holds its lock, or if it has no lock file."""
    if _is_own(folder.lstat(), stat.S_ISDIR) and _is_own((folder / _LOCK).lstat(), stat.S_ISREG):
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            scratch.wipe(str(folder))
        finally:
            os.close(lock)


def _is_own(status: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    return status.st_uid == os.geteuid() and is_kind(status.st_mode)

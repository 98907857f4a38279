"""Temporary folders that the next run can tell are nobody's any more: who was killed leaves them behind.

The owner holds a lock on a file in its folder, and the system lets go of that however the process ends.
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
_TRIES = 10

_held: dict[Path, int] = {}
"""The folders of this process and their locks."""


def make(prefix: str) -> Path:
    """A new folder, with a file of its own in it; this process's until it ends or removes it. Raises OSError."""
    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / _LOCK).lstat()
        except (BlockingIOError, FileNotFoundError):  # another run took it for nobody's, and removes it or has done so
            os.close(lock)
            continue
        _held[folder] = lock
        return folder
    raise OSError("no temporary folder could be kept")


def remove(folder: Path) -> None:
    """Removes a folder of this process's, whatever is in it, if it is still there; raises OSError."""
    lock = _held.pop(folder, None)
    if lock is None:
        return
    try:
        scratch.wipe(str(folder))
    finally:
        os.close(lock)


@contextmanager
def held(prefix: str) -> Iterator[Path]:
    """An empty folder within such a folder, for as long as it is needed."""
    folder = make(prefix)
    try:
        inner = folder / "held"
        inner.mkdir()
        yield inner
    finally:
        remove(folder)


def clear() -> None:
    """Removes what runs of this user's have left behind; what anyone may still need, or put there, stays."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if _OURS.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _clear(Path(entry.path))


def _clear(folder: Path) -> None:
    """Removes a folder that is this user's, and whose lock nobody holds. Raises OSError, also where it is neither."""
    if not _is_own(folder.lstat(), stat.S_ISDIR) or not _is_own((folder / _LOCK).lstat(), stat.S_ISREG):
        return
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        scratch.wipe(str(folder))
    finally:
        os.close(lock)


def _is_own(status: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    return status.st_uid == os.geteuid() and is_kind(status.st_mode)

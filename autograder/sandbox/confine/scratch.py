"""Scratch folders of workers, within their limits, and temporary folders of the processes that start them.

If the kernel allows it, all scratch folders lie in a file system in memory whose size is the limit. Root can mount such
a file system, and so can an ordinary user if the kernel grants user namespaces. Its mount namespace belongs to the fork
server: no other process sees the files, and they are gone when the fork server ends. If the kernel does not allow it,
the fork server counts the files.

If a process is killed and leaves its temporary folder behind, a later run recognizes that, and removes the folder. The
process holds a lock on a file in its folder. The system releases the lock when the process ends in any way.
"""

import contextlib
import fcntl
import os
import re
import secrets
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from .process import call_kernel

MOST_FILES = 1_000
_COUNTING_SECONDS = 5

_NEW_NAMESPACE, _NEW_USER = 0x00020000, 0x10000000  # see unshare(2)
_NO_SUID, _NO_DEVICES = 0x2, 0x4  # see mount(2)
_RECURSIVE, _PRIVATE = 0x4000, 0x40000
_OWN_INODES = 2
"""The kernel counts two folders as files: the mounted one, and one scratch folder in it."""

Excess = Literal["", "bytes", "files"]
"""The limit that a worker's files exceed; empty if they exceed none."""


def mount(folder: str, most_bytes: int, *, has_namespace: bool) -> bool:
    """Mount a file system in memory on a folder, and return True; return False if the kernel does not allow it.

    most_bytes: its size. has_namespace: True if this process is in a mount namespace of its own already.
    """
    if sys.platform != "linux":
        return False
    options = f"size={most_bytes},nr_inodes={MOST_FILES + _OWN_INODES},mode=700"
    try:
        if not has_namespace:
            _enter_namespace()
        call_kernel("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", _NO_SUID | _NO_DEVICES, options.encode())
    except OSError:
        return False
    return True


def _enter_namespace() -> None:
    """Move this process into a mount namespace of its own; raises OSError, after which nothing has changed."""
    if os.geteuid() == 0:
        call_kernel("unshare", _NEW_NAMESPACE)
        _keep_mounts_here()
        return
    child = os.fork()  # tries it first: a process that may do nothing in its user namespace cannot leave it again
    if not child:
        try:
            _enter_user_namespace()
        except BaseException:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise PermissionError
    _enter_user_namespace()


def _enter_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    call_kernel("unshare", _NEW_USER | _NEW_NAMESPACE)
    process = Path("/proc/self")
    (process / "setgroups").write_text("deny")
    (process / "uid_map").write_text(f"{user} {user} 1")
    (process / "gid_map").write_text(f"{group} {group} 1")
    _keep_mounts_here()


def _keep_mounts_here() -> None:
    call_kernel("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)


def find_excess(folder: str, worker: int, most_bytes: int) -> Excess:
    """Return the limit that a worker's files exceed; files that are deleted but still open count as well.

    folder: the worker's scratch folder. worker: its process id. The worker is stopped during the count, because it
    could rename files to keep them from being counted. If the count fails twice, the result is `files`.
    """
    with _stopped(worker):
        for _ in range(2):
            with contextlib.suppress(OSError, ValueError, IndexError, subprocess.SubprocessError):
                if _count("--block-size=1", folder) + _deleted_but_open(worker) > most_bytes:
                    return "bytes"
                return "files" if _count("--inodes", folder) > MOST_FILES else ""
    return "files"


@contextmanager
def _stopped(worker: int) -> Iterator[None]:
    """Stop a child process during the block. A child that has ended can still be waited for afterwards."""
    os.kill(worker, signal.SIGSTOP)
    os.waitid(os.P_PID, worker, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    try:
        yield
    finally:
        os.kill(worker, signal.SIGCONT)


def _count(unit: str, folder: str) -> int:
    """Return the count that du(1) prints with option `unit`; du also enters folders too deep for a path to name."""
    command = ["du", "--summarize", unit, folder]
    output = subprocess.run(command, capture_output=True, text=True, timeout=_COUNTING_SECONDS, check=True).stdout
    return int(output.split()[0])


def _deleted_but_open(worker: int) -> int:
    """Return the bytes of files that a worker has deleted but still has open; 0 if there is no /proc."""
    size = 0
    for descriptor in Path(f"/proc/{worker}/fd").glob("*"):
        with contextlib.suppress(OSError):
            status = descriptor.stat()
            if not status.st_nlink and stat.S_ISREG(status.st_mode):
                size += status.st_blocks * 512
    return size


def wipe(folder: str) -> None:
    """Delete a folder with all its content. Folders too deep for a path to name are moved to its top first."""
    top = Path(folder)
    while folders := _delete_files(top):
        for inner in folders:
            for innermost in _delete_files(inner):
                innermost.rename(top / secrets.token_hex(8))
            inner.rmdir()
    top.rmdir()


def _delete_files(folder: Path) -> list[Path]:
    """Delete the files directly in a folder; make its subfolders accessible, and return them."""
    with os.scandir(folder) as entries:
        listing = list(entries)
    folders = [Path(entry.path) for entry in listing if entry.is_dir(follow_symlinks=False)]
    for inner in folders:
        inner.chmod(stat.S_IRWXU)
    for entry in listing:
        if not entry.is_dir(follow_symlinks=False):
            Path(entry.path).unlink()
    return folders


_LOCK = ".owner"
_OURS = re.compile(r"(?:autograder|bait|build)-[a-z0-9_]{8}")
_ATTEMPTS = 10

_locks: dict[Path, int] = {}
"""For each temporary folder of this process, the descriptor of its lock file."""


def make_temporary(prefix: str) -> Path:
    """Make a temporary folder, which this process has until it ends or calls `remove_temporary`; raises OSError."""
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


def remove_temporary(folder: Path) -> None:
    """Remove a temporary folder of this process with all its content, unless it is removed already; raises OSError."""
    lock = _locks.pop(folder, None)
    if lock is not None:
        try:
            wipe(str(folder))
        finally:
            os.close(lock)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make an empty folder within a new temporary folder, and remove both at the end of the block."""
    folder = make_temporary(prefix)
    try:
        inner = folder / "held"
        inner.mkdir()
        yield inner
    finally:
        remove_temporary(folder)


def clear_abandoned() -> None:
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
            wipe(str(folder))
        finally:
            os.close(lock)


def _is_own(status: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    return status.st_uid == os.geteuid() and is_kind(status.st_mode)

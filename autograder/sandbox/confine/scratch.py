"""A worker's scratch folder: made for it, watched while it runs, wiped after it, whatever is in it."""

import contextlib
import os
import secrets
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

MOST_FILES = 1_000
_PATIENCE = 5  # seconds

Excess = Literal["", "bytes", "files"]
"""What there is too much of."""


def make(folder: str) -> str:
    """A new scratch folder in this one."""
    return tempfile.mkdtemp(prefix="submission-", dir=folder)


def excess(folder: str, worker: int, most_bytes: int) -> Excess:
    """Whether more than this many bytes, or a great many files, lie in a worker's folder, or are deleted but open.

    The worker is stopped meanwhile: files that are renamed while they are counted are not seen. What cannot be counted,
    tried twice, is too much.
    """
    with _stopped(worker):
        for _ in range(2):
            with contextlib.suppress(OSError, ValueError, IndexError, subprocess.SubprocessError):
                return _counted(folder, worker, most_bytes)
    return "files"


@contextlib.contextmanager
def _stopped(worker: int) -> Iterator[None]:
    """Stops a child of this process, and lets it go on after; what has ended stays to be waited for."""
    os.kill(worker, signal.SIGSTOP)
    os.waitid(os.P_PID, worker, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    try:
        yield
    finally:
        os.kill(worker, signal.SIGCONT)


def _counted(folder: str, worker: int, most_bytes: int) -> Excess:
    """du(1) counts, which goes down deeper than a path can name."""
    if _measured("--block-size=1", folder) + _deleted_but_open(worker) > most_bytes:
        return "bytes"
    return "files" if _measured("--inodes", folder) > MOST_FILES else ""


def _deleted_but_open(worker: int) -> int:
    """The bytes of files without a name; none are seen where there is no /proc."""
    used = 0
    for descriptor in Path(f"/proc/{worker}/fd").glob("*"):
        with contextlib.suppress(OSError):
            status = descriptor.stat()
            if not status.st_nlink and stat.S_ISREG(status.st_mode):
                used += status.st_blocks * 512
    return used


def _measured(unit: str, folder: str) -> int:
    command = ["du", "--summarize", unit, folder]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True).stdout
    return int(printed.split()[0])


def wipe(folder: str) -> None:
    """Deletes the folder. Folders within are moved to its top first: they may be nested deeper than a path can name."""
    top = Path(folder)
    while folders := _emptied_of_files(top):
        for inner in folders:
            for innermost in _emptied_of_files(inner):
                innermost.rename(top / secrets.token_hex(8))
            inner.rmdir()
    top.rmdir()


def _emptied_of_files(folder: Path) -> list[Path]:
    """Deletes the folder's files; returns the folders in it, open to be emptied in turn."""
    with os.scandir(folder) as entries:
        listed = list(entries)
    folders = []
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            Path(entry.path).chmod(stat.S_IRWXU)
            folders.append(Path(entry.path))
        else:
            Path(entry.path).unlink()
    return folders

"""A worker's scratch folder: made for it, watched while it runs, wiped after it, whatever is in it."""

import contextlib
import os
import secrets
import stat
import subprocess
import tempfile
from pathlib import Path

MOST_FILES = 1_000
_PATIENCE = 5  # seconds


def make() -> str:
    """A new scratch folder."""
    return tempfile.mkdtemp(prefix="submission-")


def is_overfull(folder: str, worker: int, most_bytes: int) -> bool:
    """Whether more than this many bytes, or a great many files, lie in a worker's folder, or are deleted but open.

    du(1) counts, which goes down deeper than a path can name.
    """
    try:
        used = _measured("--block-size=1", folder) + _deleted_but_open(worker)
        return used > most_bytes or _measured("--inodes", folder) > MOST_FILES
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):  # the folder may be gone
        return False


def _deleted_but_open(worker: int) -> int:
    """The bytes of files without a name; none are seen where there is no /proc, and a small /tmp is the limit."""
    used = 0
    for descriptor in Path(f"/proc/{worker}/fd").glob("*"):
        with contextlib.suppress(OSError):
            status = descriptor.stat()
            if not status.st_nlink and stat.S_ISREG(status.st_mode):
                used += status.st_blocks * 512
    return used


def _measured(unit: str, folder: str) -> int:
    command = ["du", "--summarize", unit, folder]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE).stdout
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

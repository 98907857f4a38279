"""Tells by a look at a submission's files whether it is another one than before, and whether it is finished."""

import time
from pathlib import Path

from ..gradebook.time_stamp import TIMESTAMP

STILL_SECONDS = 0.25
"""A notebook that was changed less than so long ago may be in the middle of being written."""
Look = tuple[object, ...]
"""What tells a file that was looked at from another in its place."""


def size(its: Look) -> int:
    """How large the notebook is, in bytes."""
    _, _, notebook, _ = its
    return notebook[2] if isinstance(notebook, tuple) else 0


def status(path: Path) -> tuple[int, int, int] | None:
    """Inode, time and size of a file, or of the zip file that the path leads into; None if it is not there."""
    try:
        its = path.lstat()
    except NotADirectoryError:
        return status(path.parent)
    except OSError:
        return None
    return its.st_ino, its.st_mtime_ns, its.st_size


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except NotADirectoryError:
        return _changed(path.parent)
    except OSError:
        return 0.0


def may_be_unfinished(folder: Path, notebook: str) -> bool:
    """Whether somebody may be writing the notebook; not where the time of handing in was written after it."""
    changed = _changed(folder / notebook)
    return _changed(folder / TIMESTAMP) < changed and 0 <= time.time() - changed < STILL_SECONDS


def look(folder: Path, notebook: str) -> Look:
    """What is to be seen of a submission without reading it."""
    return notebook, status(folder), status(folder / notebook), status(folder / TIMESTAMP)

"""A worker's scratch folder: made for it, watched while it runs, wiped after it, whatever is in it."""

import os
import secrets
import stat
import tempfile
from pathlib import Path

MOST_FILES = 10_000


def make() -> str:
    """A new scratch folder."""
    return tempfile.mkdtemp(prefix="submission-")


def is_overfull(folder: str, most_bytes: int) -> bool:
    """Whether more than this many bytes, or a great many files, lie in the folder."""
    waiting, files, used = [folder], 0, 0
    while waiting and files <= MOST_FILES and used <= most_bytes:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    files += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        used += entry.stat(follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:
            continue  # deleted while we looked
        except PermissionError:
            continue  # nothing can be put into a folder without permissions
        except OSError:
            return True  # folders in folders beyond what a path can name
    return files > MOST_FILES or used > most_bytes


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

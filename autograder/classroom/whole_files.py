"""Writes a folder's files so that each is there whole or not at all, whenever the process ends."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..output_files import replacing


class Common:
    """The content of a file that lies in many folders: the first is written, the others are hard links to it."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._first: tuple[Path, tuple[int, ...]] | None = None

    def put(self, path: Path, mode: int) -> None:
        """Replaces a file in one step; raises OSError. A first one that was changed or is gone is written anew."""
        if self._first is not None and _state(self._first[0]) == self._first[1]:
            with suppress(OSError):  # another file system, one without links, or one with as many as it takes
                part = _part(path)
                os.link(self._first[0], part)
                part.replace(path)  # which does nothing where they are one file already: `fill` removes the part
                return
        write(path, self._content, mode)
        self._first = path, _state(path)


def fill(folder: Path, files: Mapping[str, bytes | Common], mode: int) -> None:
    """Makes these the files in the folder, and the only ones; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if isinstance(content, Common):
            content.put(folder / name, mode)
        else:
            write(folder / name, content, mode)
    for other in folder.iterdir():
        if other.is_dir() and not other.is_symlink():
            shutil.rmtree(other)
        elif other.name not in files:
            other.unlink()


def write(path: Path, content: bytes, mode: int) -> None:
    """Replaces a file in one step; raises OSError."""
    with replacing(path, mode, _part(path)) as file:
        file.write(content)


def _part(path: Path) -> Path:
    """Where a file is made; what a killed run left there is gone, as it may not be writable."""
    part = path.with_name(f".{path.name}.part")
    with suppress(FileNotFoundError):
        part.unlink()
    return part


def _state(path: Path) -> tuple[int, ...]:
    """What tells whether a file was written to since; nothing where it cannot be looked at."""
    try:
        found = path.stat(follow_symlinks=False)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode

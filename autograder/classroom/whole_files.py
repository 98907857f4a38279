"""Writes a folder's files so that each is there whole or not at all, whenever the process ends."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..output_files import replacing


class Common:
    """The content of a file in many folders: the first file is written, the others are hard links to it."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._first: tuple[Path, tuple[int, ...]] | None = None

    def put(self, path: Path, mode: int) -> None:
        """Replace a file in one step; write the first one again if it was changed or deleted. Raises OSError."""
        if self._first is not None and _state(self._first[0]) == self._first[1]:
            with suppress(OSError):  # of another file system, or of one without, or without further, links
                part = _part(path)
                os.link(self._first[0], part)
                part.replace(path)  # does nothing if both are one file already: then `fill` removes the part
                return
        write(path, self._content, mode)
        self._first = path, _state(path)


def fill(folder: Path, files: Mapping[str, bytes | Common], mode: int) -> None:
    """Write these files into the folder, and delete all others. Raises OSError."""
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
    """Replace a file in one step. Raises OSError."""
    with replacing(path, mode, _part(path)) as file:
        file.write(content)


def _part(path: Path) -> Path:
    """Return the path of the partial file; delete what a killed run left there, which may not be writable."""
    part = path.with_name(f".{path.name}.part")
    with suppress(FileNotFoundError):
        part.unlink()
    return part


def _state(path: Path) -> tuple[int, ...]:
    """Return values that change when a file is written to; an empty tuple if it cannot be read."""
    try:
        its = path.stat(follow_symlinks=False)
    except OSError:
        return ()
    return its.st_dev, its.st_ino, its.st_size, its.st_mtime_ns, its.st_mode

"""Writes a folder's files so that each is there whole or not at all, whenever the process ends."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def fill(folder: Path, files: Mapping[str, bytes], mode: int) -> None:
    """Makes these the files in the folder, and the only ones; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write(folder / name, content, mode)
    for other in folder.iterdir():
        if other.is_dir() and not other.is_symlink():
            shutil.rmtree(other)
        elif other.name not in files:
            other.unlink()


def write(path: Path, content: bytes, mode: int) -> None:
    """Replaces a file in one step; raises OSError."""
    part = path.with_name(f".{path.name}.part")
    try:
        with suppress(FileNotFoundError):
            part.unlink()  # left by a killed run: it may not be writable
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.chmod(mode)  # whatever the umask
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise

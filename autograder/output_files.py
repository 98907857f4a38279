"""Write files, each whole or not at all: results of commands, and the files of folders.

The result files of commands replace only regular files.
"""

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from . import UserError

_MODE = 0o644
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
"""Errors of the disk, not of one student's folders."""
_ESCAPED = re.compile(r"^[.-]|[^\w.@+-]")
"""Characters of a text that a file's name does not contain."""
_MOST_BYTES = 200
"""Maximum number of bytes of a file's name in its partial file's name. A folder allows names of 255 bytes."""


class NotWritable(UserError):
    """A file cannot be written, or must not be; `str()` says why and what to do."""


def check(path: Path, inputs: Collection[Path] = (), *, makes_folder: bool = False) -> None:
    """Raise NotWritable if a file cannot be written at this path, or should not be; change nothing.

    inputs: the files that the command reads, none of which is replaced by its result. makes_folder: whether a
    missing folder is created.
    """
    if os.path.realpath(path) in map(os.path.realpath, inputs):
        raise NotWritable(f"{path} is a file that this command reads. Name another file for the result.")
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        kind = 0
    except (OSError, ValueError) as error:
        raise NotWritable(f"{path} cannot be written: {_reason(error)}. Give another name.") from None
    if kind == stat.S_IFLNK:
        raise NotWritable(
            f"{path} is a link, so another file would be overwritten. Give the name of a file that is not a link."
        )
    if kind == stat.S_IFDIR:
        raise NotWritable(f"{path} is a folder. Give the name of a file.")
    if kind not in (0, stat.S_IFREG):
        raise NotWritable(f"{path} is not a regular file, and is not replaced by one. Give another name.")
    folder = path.parent
    while makes_folder and not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise NotWritable(f"{path} cannot be written: there is no folder {folder}.")
    if not _is_changeable(path if kind else None, folder):
        raise NotWritable(f"{path} cannot be written: you have no permission to change this file or its folder.")


def file_name(text: str) -> str:
    """Return a text, such as a student's id, as the name of a file; different texts have different names.

    >>> file_name("../Ada L")
    '%2E.%2FAda%20L'
    """
    return _ESCAPED.sub(lambda match: "".join(f"%{byte:02X}" for byte in os.fsencode(match[0])), text)


def write(contents: Mapping[Path, bytes], mode: int | None = None, *, makes_folder: bool = False) -> None:
    """Write these files, all of them or none. Raise NotWritable as `check` does, or if the disk is full.

    mode: their permissions; if not given, those of the file that is replaced, or 0644.
    """
    for path in contents if makes_folder else ():
        check(path, makes_folder=True)
        with _saying(path):
            path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:
        for path, content in contents.items():
            file = files.enter_context(opened(path, mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # a full disk is noticed before any file is replaced


@contextmanager
def opened(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file to write. It replaces that at `path` when the block ends; if the block raises, nothing is replaced.

    Raise NotWritable as `write` does.
    """
    check(path)
    name = os.fsencode(path.name)[:_MOST_BYTES].decode(errors="ignore")
    with _saying(path):
        kept = stat.S_IMODE(path.lstat().st_mode) if path.exists() else _MODE
        part = path.with_name(f".{name}.{secrets.token_hex(4)}.part")  # another run may write the same file
        with replacing(path, kept if mode is None else mode, part) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # some file systems do not say before that they are full


@contextmanager
def _saying(path: Path) -> Iterator[None]:
    """Turn an error of the disk into NotWritable."""
    try:
        yield
    except OSError as error:
        raise NotWritable(f"{path} could not be written to the end: {_reason(error)}.") from None


@contextmanager
def replacing(path: Path, mode: int, part: Path) -> Iterator[IO[bytes]]:
    """Open a new file, `part`, which takes another's place when the block ends, and is deleted if the block raises.

    Raise OSError.
    """
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        part.chmod(mode)  # regardless of the umask
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _is_changeable(path: Path | None, folder: Path) -> bool:
    """Return whether this process may write to a file, if there is one, and make files in its folder.

    It tries both, because access(2) allows root to write to files of the kernel that refuse it.
    """
    try:
        if path:
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK))
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


class CommonFile:
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
                part.replace(path)  # does nothing if both are one file already: then `fill_folder` removes the part
                return
        replace_file(path, self._content, mode)
        self._first = path, _state(path)


def fill_folder(folder: Path, files: Mapping[str, bytes | CommonFile], mode: int) -> None:
    """Write these files into the folder, and delete all others. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if isinstance(content, CommonFile):
            content.put(folder / name, mode)
        else:
            replace_file(folder / name, content, mode)
    for other in folder.iterdir():
        if other.is_dir() and not other.is_symlink():
            shutil.rmtree(other)
        elif other.name not in files:
            other.unlink()


def replace_file(path: Path, content: bytes, mode: int) -> None:
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

"""A folder that strangers may change while it is read: it is opened once, and everything in it is opened from there.

A path is looked up again each time it is used, and meanwhile a file can become a link to someone else's. An open file
stays the same file.
"""

import errno
import os
import stat
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe waits for a writer who never comes.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 18


class NotAFile(Exception):
    """There is a link, a folder, a pipe, a socket or a device where a file should be."""


class OpenedFile:
    """A regular file that is open for reading, and is closed along with this object."""

    def __init__(self, descriptor: int) -> None:
        """Takes over the descriptor; raises NotAFile."""
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            self._close()
            raise NotAFile

    @property
    def size(self) -> int:
        """In bytes, at this moment."""
        return os.fstat(self._descriptor).st_size

    def chunk(self) -> bytes:
        """The next bytes; none at the end. Raises OSError."""
        return os.read(self._descriptor, _CHUNK)

    def beginning(self, length: int) -> bytes:
        """Return the first bytes, regardless of the reading position; raises OSError."""
        return os.pread(self._descriptor, length, 0)

    def stream(self) -> BinaryIO:
        """The file for reading in any order, which closes by itself; nothing is read with `chunk` meanwhile."""
        return os.fdopen(os.dup(self._descriptor), "rb")

    def __enter__(self) -> "OpenedFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close()


class OpenedFolder:
    """An open folder, which is closed along with this object."""

    def __init__(self, descriptor: int) -> None:
        """Takes over the descriptor."""
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def at(cls, path: Path) -> "OpenedFolder":
        """The folder at one of the instructor's own paths, in which links are followed; raises OSError."""
        return cls(os.open(path, _FOLDER))

    @classmethod
    def of_student(cls, path: Path) -> "OpenedFolder":
        """The folder at a path SUBMISSIONS/STUDENT/UNIT, of which the last two must not be links.

        Raises OSError; NotADirectoryError if one is a link.
        """
        everyones, student, unit = path.parent.parent, path.parent.name, path.name
        with cls.at(everyones) as opened, opened.folder(student) as folder:
            return folder.folder(unit)

    def folder(self, name: str) -> "OpenedFolder":
        """The folder of this name in it; raises OSError, NotADirectoryError if it is a link."""
        return OpenedFolder(os.open(_within(name), _FOLDER | os.O_NOFOLLOW, dir_fd=self._descriptor))

    def file(self, name: str) -> OpenedFile:
        """The file of this name in it; raises NotAFile and OSError."""
        return _opened(_within(name), self._descriptor)

    def names(self) -> list[str]:
        """The names in it, in alphabetical order; raises OSError."""
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208  a Path would be looked up again

    def status(self, name: str) -> os.stat_result:
        """The status of what has this name, for a link its own: for sorting and for messages, never for a decision.

        Raises OSError.
        """
        return os.stat(_within(name), dir_fd=self._descriptor, follow_symlinks=False)

    def is_folder(self, name: str) -> bool:
        """Whether there is a folder of this name, not a link to one."""
        return _is(stat.S_ISDIR, self, name)

    def is_link(self, name: str) -> bool:
        """Whether there is a link of this name."""
        return _is(stat.S_ISLNK, self, name)

    def leads_to_folder(self, path: str) -> bool:
        """Whether this path is a folder, links followed: so that a link gets a row that says what it is."""
        try:
            return stat.S_ISDIR(os.stat(path, dir_fd=self._descriptor).st_mode)
        except (OSError, ValueError):
            return False

    def __enter__(self) -> "OpenedFolder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close()


def file_at(path: Path) -> OpenedFile:
    """The file at a path that the instructor gave, whose last part must not be a link. Raises NotAFile and OSError."""
    return _opened(str(path), None)


def bytes_of(file: OpenedFile, limit: int) -> bytes | None:
    """The content of a small file; None if it is more than the limit. Raises OSError."""
    content = b""
    while len(content) <= limit and (chunk := file.chunk()):
        content += chunk
    return content if len(content) <= limit else None


def is_one_name(name: str) -> bool:
    """Whether this can be the name of something in a folder, and is not a path."""
    return bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name


def _within(name: str) -> str:
    if not is_one_name(name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return name


def _opened(path: str, folder: int | None) -> OpenedFile:
    try:
        descriptor = os.open(path, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):  # a link, a socket, a device without a driver
            raise NotAFile from None
        raise
    return OpenedFile(descriptor)


def _is(of_kind: Callable[[int], bool], folder: OpenedFolder, name: str) -> bool:
    try:
        return of_kind(folder.status(name).st_mode)
    except OSError:
        return False

"""A folder that strangers may change while it is read: opened once, and everything in it reached from there.

A path is looked up anew each time it is used, and in between a file can become a link to another's. What is open stays
what it is.
"""

import errno
import os
import stat
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe waits for a writer who never comes.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 18


class NotAFile(Exception):
    """There is a link, a folder, a pipe, a socket or a device where a file should be."""


class OpenedFile:
    """A regular file that is open for reading, and closed when this object goes."""

    def __init__(self, descriptor: int) -> None:
        """Takes over the descriptor; raises NotAFile."""
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            self._close()
            raise NotAFile

    @property
    def size(self) -> int:
        """Bytes, at this moment."""
        return os.fstat(self._descriptor).st_size

    def chunk(self) -> bytes:
        """The next bytes, none at the end; raises OSError."""
        return os.read(self._descriptor, _CHUNK)

    def __enter__(self) -> "OpenedFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close()


class OpenedFolder:
    """A folder that is open, and closed when this object goes."""

    def __init__(self, descriptor: int) -> None:
        """Takes over the descriptor."""
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def at(cls, path: Path) -> "OpenedFolder":
        """The folder at a path of the instructor's own, where links are followed; raises OSError."""
        return cls(os.open(path, _FOLDER))

    @classmethod
    def of_student(cls, path: Path) -> "OpenedFolder":
        """The folder at a path SUBMISSIONS/STUDENT/UNIT, of which the last two may be no links.

        Raises OSError; NotADirectoryError where one is a link.
        """
        everyones, student, unit = path.parent.parent, path.parent.name, path.name
        with cls.at(everyones) as opened, opened.folder(student) as folder:
            return folder.folder(unit)

    def folder(self, name: str) -> "OpenedFolder":
        """The folder of this name in it; raises OSError, NotADirectoryError where there is a link."""
        return OpenedFolder(os.open(_within(name), _FOLDER | os.O_NOFOLLOW, dir_fd=self._descriptor))

    def file(self, name: str) -> OpenedFile:
        """The file of this name in it; raises NotAFile and OSError."""
        return _opened(_within(name), self._descriptor)

    def names(self) -> list[str]:
        """What lies in it, in alphabetical order; raises OSError."""
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208  a Path is looked up anew

    def status(self, name: str) -> os.stat_result:
        """Of what has this name, a link's own; to put names in order and to choose words, and for nothing that counts.

        Raises OSError.
        """
        return os.stat(_within(name), dir_fd=self._descriptor, follow_symlinks=False)

    def is_folder(self, name: str) -> bool:
        """Whether there is a folder of this name, and no link to one."""
        return _is(stat.S_ISDIR, self, name)

    def is_link(self, name: str) -> bool:
        """Whether there is a link of this name."""
        return _is(stat.S_ISLNK, self, name)

    def leads_to_folder(self, path: str) -> bool:
        """Whether a folder is at this path, links followed: so that a link has a row that says what it is."""
        try:
            return stat.S_ISDIR(os.stat(path, dir_fd=self._descriptor).st_mode)
        except (OSError, ValueError):
            return False

    def __enter__(self) -> "OpenedFolder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close()


def file_at(path: Path) -> OpenedFile:
    """The file at a path that the instructor gave; only its last part may be no link. Raises NotAFile and OSError."""
    return _opened(str(path), None)


def bytes_of(file: OpenedFile, limit: int) -> bytes | None:
    """All that is in a small file; None where that is more than the limit. Raises OSError."""
    content = b""
    while len(content) <= limit and (chunk := file.chunk()):
        content += chunk
    return content if len(content) <= limit else None


def is_one_name(name: str) -> bool:
    """Whether this can be the name of something in a folder, and is no path."""
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

"""A folder that students may change while it is read: it is opened once, and everything in it is opened from there.

A path is resolved again at each use, and meanwhile a file can become a link to another student's. An open file stays
the same file. A student's folder is also replaced as a whole, so that no process ever finds half of a submission.
"""

import errno
import os
import shutil
import stat
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import BufferedReader
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe waits for a writer that never comes.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotAFile(Exception):
    """There is a link, a folder, a pipe, a socket or a device instead of a file."""


class OpenedFolder(AbstractContextManager["OpenedFolder"]):
    """An open folder, which is closed along with this object."""

    def __init__(self, descriptor: int) -> None:
        """Take over the descriptor."""
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def at(cls, path: Path) -> "OpenedFolder":
        """Open the folder at one of the instructor's own paths, in which links are followed; raises OSError."""
        return cls(os.open(path, _FOLDER))

    @classmethod
    def of_student(cls, path: Path) -> "OpenedFolder":
        """Open the folder at a path SUBMISSIONS/STUDENT/UNIT, of which the last two must not be links.

        Raises OSError; NotADirectoryError if one is a link.
        """
        with cls.at(path.parent.parent) as submissions, submissions.folder(path.parent.name) as student:
            return student.folder(path.name)

    def folder(self, name: str) -> "OpenedFolder":
        """Open the folder of this name in it; raises OSError, NotADirectoryError if it is a link."""
        return OpenedFolder(os.open(_checked(name), _FOLDER | os.O_NOFOLLOW, dir_fd=self._descriptor))

    def file(self, name: str) -> BufferedReader:
        """Open the file of this name in it; raises NotAFile and OSError."""
        return file_at(_checked(name), self._descriptor)

    def names(self) -> list[str]:
        """Return the names in it, in alphabetical order; raises OSError."""
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208  a Path would be resolved again

    def status(self, name: str) -> os.stat_result:
        """Return the status of a name, for a link its own: for sorting and for messages, never for a decision.

        Raises OSError.
        """
        return os.stat(_checked(name), dir_fd=self._descriptor, follow_symlinks=False)

    def is_folder(self, name: str) -> bool:
        """Return whether there is a folder of this name, not a link to one."""
        return self._is(stat.S_ISDIR, name)

    def is_link(self, name: str) -> bool:
        """Return whether there is a link of this name."""
        return self._is(stat.S_ISLNK, name)

    def leads_to_folder(self, path: str) -> bool:
        """Return whether this path is a folder after following links, so that a link gets a row that explains it."""
        try:
            return stat.S_ISDIR(os.stat(path, dir_fd=self._descriptor).st_mode)
        except (OSError, ValueError):
            return False

    def _is(self, is_kind: Callable[[int], bool], name: str) -> bool:
        try:
            return is_kind(self.status(name).st_mode)
        except OSError:
            return False

    def __exit__(self, *error: object) -> None:
        self._close()


def file_at(path: Path | str, folder: int | None = None) -> BufferedReader:
    """Open the regular file at a path, whose last part must not be a link; raises NotAFile and OSError.

    folder: descriptor of the folder that the path begins in, by default the working directory.
    """
    try:
        descriptor = os.open(path, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV):  # a link, a socket, a device without a driver
            raise NotAFile from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFile
    return os.fdopen(descriptor, "rb")


def size_of(file: BufferedReader) -> int:
    """Return the current size of an open file in bytes."""
    return os.fstat(file.fileno()).st_size


def read_up_to(file: BufferedReader, limit: int) -> bytes | None:
    """Return the content of a small file; None if it is longer than the limit in bytes. Raises OSError."""
    content = file.read(limit + 1)
    return content if len(content) <= limit else None


def is_one_name(name: str) -> bool:
    """Return whether this can be the name of a file in a folder, and is not a path."""
    return bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name


def _checked(name: str) -> str:
    if not is_one_name(name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return name


def sibling(path: Path, label: str) -> Path:
    """Return a name next to a folder that cannot be the name of a submission."""
    return path.with_name(f".{path.name}.{label}")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Make a folder next to a path, to fill and to move there; delete it if that fails.

    The folder around the two is made if it is missing, and deleted if nothing is moved there. Raises OSError.
    """
    new, is_inside = sibling(path, "part"), path.parent.exists()
    shutil.rmtree(new, ignore_errors=True)  # from a killed run
    new.mkdir(parents=True)
    try:
        yield new
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if not is_inside and not any(path.parent.iterdir()):
            path.parent.rmdir()


def replace_folder(new: Path, path: Path) -> None:
    """Move a finished folder to a path and delete the one that was there; raises OSError.

    At any moment there is the old folder or the new one, or `restore_folder` restores the old one.
    """
    restore_folder(path)
    old = sibling(path, "old")
    if old.is_dir():
        shutil.rmtree(old)
    if os.path.lexists(path):
        path.rename(old)
    new.rename(path)
    if old.is_dir():
        shutil.rmtree(old)


def restore_folder(path: Path) -> None:
    """Restore the folder that a process moved away before it was killed in `replace_folder`; raises OSError."""
    old = sibling(path, "old")
    if old.is_dir() and not os.path.lexists(path):
        old.rename(path)

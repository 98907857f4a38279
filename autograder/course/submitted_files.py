"""Names, folders and zip files that students choose, write and may change while they are read.

A student's id appears in paths, on pages, in terminals and in spreadsheets. A folder is opened once, and everything in
it is opened from there: a path is resolved again at each use, and meanwhile a file can become a link to another
student's. An open file stays the same file. A student's folder is also replaced as a whole, so that no process ever
finds half of a submission. No more is read from a zip file than is allowed, regardless of what it says of itself.
"""

import errno
import os
import re
import shutil
import stat
import struct
import unicodedata
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from ..errors import UserError
from .notebook import is_visible, printable

RULE = "letters and digits of any script and . _ - @ + ', the first not a dot or dash"
_KINDS = dict.fromkeys(".-", "-") | dict.fromkeys("_@+'", "_") | {"Nd": "0", "Mn": "^", "Mc": "^"}
"""A symbol for each character, or else each Unicode category, that ids may have besides letters."""
_ID = re.compile(r"(?!-)(?:L\^{0,3}|[-_0])+")
"""More accents than three on a letter, which no script writes, would hide the text below them."""
_OF_JAVASCRIPT = {
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
    *("toLocaleString", "toString", "valueOf"),
    *("__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"),
}
"""Properties of every object in JavaScript: formgrader's script looks students up by id, and would find these."""
_LONGEST = 255
"""Limit in bytes of a folder's name on Linux and macOS."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe waits for a writer that never comes.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MOST_ENTRIES = 100_000
_MOST_OF_STUDENT = 2_000
"""Limit for the files in a zip file that a student created."""
_BYTES_OF_ENTRY = 400
"""Size of an entry in a zip file's list of files: 46 bytes and the name."""
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""The others take an amount of time or memory that a student can choose."""
_LONGEST_NAME = 240  # bytes; most file systems allow 255
_DEEPEST = 20
_ENCRYPTED, _IN_UTF8 = 0x1, 0x800
_CHUNK = 1 << 18
_OF_PROGRAMS = ("__MACOSX", ".DS_Store", ".ipynb_checkpoints")
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, RuntimeError, LookupError, ArithmeticError),
)
"""Exceptions that opening and unpacking a damaged file may raise."""


def can_be_id(name: str) -> bool:
    """Return whether a new student may have this id.

    A vowel sign or an accent counts with the letter before it, regardless of whether Unicode has one character for
    both. Invisible characters, such as joiners and changes of direction, are not letters.
    """
    return (
        bool(_ID.fullmatch("".join(map(_kind, unicodedata.normalize("NFC", name)))))
        and name not in _OF_JAVASCRIPT
        and all(map(is_visible, name))
        and len(name.encode()) <= _LONGEST
    )


def _kind(character: str) -> str:
    category = unicodedata.category(character)
    return _KINDS.get(character) or _KINDS.get(category) or ("L" if category[0] == "L" else "?")


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


class BadZip(UserError):
    """The zip file cannot be used; `str()` says why."""


class NotTaken(Exception):
    """A file in it cannot be unpacked; `str()` says why."""


class _BoundedReader:
    """A file that refuses to read more at once than a zip file's list of files may have."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._most = most
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(self._most + 1 if size < 0 else min(size, self._most + 1))
        if len(content) > self._most:
            raise zipfile.BadZipFile("its list of files is too long")
        return content


class ZipFile(AbstractContextManager["ZipFile"]):
    """An open zip file, to be used in a `with` statement."""

    def __init__(self, path: Path, stream: BinaryIO | None = None) -> None:
        """Open a zip file and read its list of files; raises BadZip.

        stream: an open file of a student's, which is closed along with this; `path` is then its name for messages.
        """
        most = _MOST_OF_STUDENT if stream else _MOST_ENTRIES
        with ExitStack() as stack:
            try:
                file = stack.enter_context(stream or path.open("rb"))
                self._file = stack.enter_context(zipfile.ZipFile(_BoundedReader(file, most * _BYTES_OF_ENTRY)))
            except OSError as error:
                raise BadZip(f"The file {path} cannot be read: {error.strerror}.") from None
            except _DAMAGED as error:
                raise BadZip(f"The file {path} is not a zip file, or is damaged: {error}.") from None
            if len(self._file.filelist) > most:
                raise BadZip(f"The file {path} has more than {most} files in it.")
            self._stack = stack.pop_all()
        for info in self._file.filelist:
            info.filename = _decoded_name(info)  # unpacking uses `orig_filename`
        self.files = [info for info in self._file.filelist if _is_file(info.filename)]
        """Entries without folders and files that programs leave behind."""

    def content(self, info: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
        """Yield a file's content in chunks; raises NotTaken if it has more than `most` bytes or cannot be unpacked."""
        if info.flag_bits & _ENCRYPTED:
            raise NotTaken("it is encrypted")
        if info.compress_type not in _COMPRESSIONS:
            raise NotTaken("it is compressed by an unsupported method")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise NotTaken("it is not a regular file (it may be a link)")
        size = 0
        try:
            with self._file.open(info) as file:
                while chunk := file.read(_CHUNK):
                    size += len(chunk)
                    if size > most:
                        raise NotTaken(f"it is larger than {most // 1_000_000} MB")
                    yield chunk
        except _DAMAGED as error:
            reason = getattr(error, "strerror", None) or error
            raise NotTaken(f"it cannot be unpacked: {printable(str(reason))[:200]}") from None

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def path_within(name: str) -> Path:
    """Return the path in a student's folder for a path in a zip file, made printable; raises NotTaken."""
    parts = [printable(part) for part in name.split("/") if part]
    if name.startswith("/") or not parts or not all(map(is_one_name, parts)) or len(parts) > _DEEPEST:
        raise NotTaken("its path is not a valid path within a folder")
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        raise NotTaken("its name is too long")
    return Path(*parts)


def _decoded_name(info: zipfile.ZipInfo) -> str:
    """Return an entry's path, decoded from UTF-8 even if the program that wrote it did not set the flag for UTF-8."""
    if info.flag_bits & _IN_UTF8:
        return info.filename
    try:
        return info.filename.encode("cp437").decode()
    except UnicodeError:
        return info.filename


def _is_file(name: str) -> bool:
    parts = name.split("/")
    is_of_program = parts[-1].startswith("._") or any(part in _OF_PROGRAMS for part in parts)
    return not name.endswith("/") and not is_of_program

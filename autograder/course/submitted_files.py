"""Safe access to names, folders and zip files that students control and may change at any time.

- Ids: a student's id appears in paths, on pages, in terminals and in spreadsheets, so its characters are restricted.
- Reading: a folder is opened once, and its files are opened relative to it. A path would be resolved again at each use,
  and meanwhile a student could replace a file by a link to another student's.
- Writing: a student's folder is replaced as a whole, so that no process finds half of a submission.
- Zip files: the number of bytes read is limited, regardless of the sizes that the zip file states.
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

from .. import UserError
from .notebook import is_visible, printable

RULE = "letters and digits of any script and . _ - @ + ', the first not a dot or dash"
_KINDS_IN_ID = dict.fromkeys(".-", "-") | dict.fromkeys("_@+'", "_") | {"Nd": "0", "Mn": "^", "Mc": "^"}
"""Characters and Unicode categories that ids may have besides letters, each with its symbol in `_ID`."""
_ID = re.compile(r"(?!-)(?:L\^{0,3}|[-_0])+")
"""Pattern of an id, with a symbol for each character; `L` is a letter, `^` an accent.

No script has more than three accents on a letter, and they would hide the text on the line below.
"""
_OF_JAVASCRIPT = {
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
    *("toLocaleString", "toString", "valueOf"),
    *("__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"),
}
"""Properties of every JavaScript object. They cannot be ids, because formgrader's script looks students up by id."""
_LONGEST_ID = 255
"""Most bytes of an id, because it names a folder: the limit of Linux and macOS."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe waits for a writer that never comes.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MOST_ENTRIES = 100_000
_MOST_OF_STUDENT = 2_000
"""Most files in a zip file that a student created."""
_BYTES_OF_ENTRY = 400
"""Bytes allowed for each entry in a zip file's list of files: 46 and the name."""
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Accepted compression methods. The others can be made to take any amount of time or memory."""
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
    """Return whether a text may be the id of a new student.

    A vowel sign or an accent may follow a letter, even if Unicode has no single character for both. Invisible
    characters, such as joiners and changes of direction, are not accepted.
    """
    return (
        bool(_ID.fullmatch("".join(map(_kind, unicodedata.normalize("NFC", name)))))
        and name not in _OF_JAVASCRIPT
        and all(map(is_visible, name))
        and len(name.encode()) <= _LONGEST_ID
    )


def _kind(character: str) -> str:
    category = unicodedata.category(character)
    return _KINDS_IN_ID.get(character) or _KINDS_IN_ID.get(category) or ("L" if category[0] == "L" else "?")


class NotAFile(Exception):
    """Raised if a path names a link, folder, pipe, socket or device instead of a regular file."""


class OpenedFolder(AbstractContextManager["OpenedFolder"]):
    """An open folder, which is closed along with this object."""

    def __init__(self, descriptor: int) -> None:
        """descriptor: that of the open folder, which this object will close."""
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def at(cls, path: Path) -> "OpenedFolder":
        """Open the folder at a path that the instructor chose; links in it are followed. Raises OSError."""
        return cls(os.open(path, _FOLDER))

    @classmethod
    def of_student(cls, path: Path) -> "OpenedFolder":
        """Open the folder at a path SUBMISSIONS/STUDENT/UNIT; STUDENT and UNIT must not be links.

        Raises OSError, and NotADirectoryError if one of them is a link.
        """
        with cls.at(path.parent.parent) as submissions, submissions.folder(path.parent.name) as student:
            return student.folder(path.name)

    def folder(self, name: str) -> "OpenedFolder":
        """Open a subfolder; raises OSError, and NotADirectoryError if it is a link."""
        return OpenedFolder(os.open(_checked(name), _FOLDER | os.O_NOFOLLOW, dir_fd=self._descriptor))

    def file(self, name: str) -> BufferedReader:
        """Open a file in this folder for reading; raises NotAFile and OSError."""
        return file_at(_checked(name), self._descriptor)

    def names(self) -> list[str]:
        """Return the names of the folder's files and subfolders in alphabetical order; raises OSError."""
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208  a Path would be resolved again

    def status(self, name: str) -> os.stat_result:
        """Return the status of a file in this folder, or of the link if it is one; raises OSError.

        The file may change meanwhile, so use the status only for sorting and messages, never for a decision.
        """
        return os.stat(_checked(name), dir_fd=self._descriptor, follow_symlinks=False)

    def is_folder(self, name: str) -> bool:
        """Return whether this folder has a subfolder of this name that is not a link."""
        return self._is(stat.S_ISDIR, name)

    def is_link(self, name: str) -> bool:
        """Return whether this folder has a link of this name."""
        return self._is(stat.S_ISLNK, name)

    def leads_to_folder(self, path: str) -> bool:
        """Return whether a path in this folder leads to a folder if links are followed."""
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
    """Return the content of an open file; None if it has more than `limit` bytes. Raises OSError."""
    content = file.read(limit + 1)
    return content if len(content) <= limit else None


def is_one_name(name: str) -> bool:
    """Return whether a text is the name of a single file, not a path or empty."""
    return bool(name) and name not in (".", "..") and "/" not in name and "\0" not in name


def _checked(name: str) -> str:
    if not is_one_name(name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return name


def sibling(path: Path, label: str) -> Path:
    """Return a path in the same directory as `path`, with a name that no submission can have."""
    return path.with_name(f".{path.name}.{label}")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Make an empty folder next to `path`, for the caller to fill and then move to `path` with `replace_folder`.

    At the end of the block the new folder is deleted unless it was moved. A missing parent folder is made, and deleted
    again if it is empty at the end. Raises OSError.
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
    """Move the folder `new` to `path`, and delete the folder that was there; raises OSError.

    If the process is killed meanwhile, the old or the new folder is at `path`, or `restore_folder` restores the old
    one.
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
    """Restore the folder at `path` if a process was killed in `replace_folder` after moving it away; raises OSError."""
    old = sibling(path, "old")
    if old.is_dir() and not os.path.lexists(path):
        old.rename(path)


class BadZip(UserError):
    """Raised if a zip file cannot be opened; `str()` says why."""


class NotTaken(Exception):
    """Raised if a file inside a zip file cannot be unpacked; `str()` says why."""


class _BoundedReader:
    """A file that raises BadZipFile if more than `most` bytes are read at once, for a zip file's list of files."""

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

        stream: a student's open file, which is closed along with this object; `path` is then only a name for messages.
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
        """The entries that are files, except those that programs leave behind."""

    def content(self, info: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
        """Yield the content of a file in the zip file, in chunks.

        Raises NotTaken if the file has more than `most` bytes or cannot be unpacked.
        """
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
    """Return a relative, printable path for a path in a zip file; raises NotTaken if it could leave its folder."""
    parts = [printable(part) for part in name.split("/") if part]
    if name.startswith("/") or not parts or not all(map(is_one_name, parts)) or len(parts) > _DEEPEST:
        raise NotTaken("its path is not a valid path within a folder")
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        raise NotTaken("its name is too long")
    return Path(*parts)


def _decoded_name(info: zipfile.ZipInfo) -> str:
    """Return an entry's path, decoded from UTF-8 even if the entry's flag for UTF-8 is not set."""
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

"""A zip file with students' files: no more is read from it than is allowed, regardless of what it says of itself."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import BinaryIO

from ..errors import UserError
from .notebook import printable
from .submitted_folder import is_one_name

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
            raise NotTaken("it is packed in an unusual way")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise NotTaken("it is not a regular file but a link or the like")
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
        raise NotTaken("its path is not one within a folder")
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

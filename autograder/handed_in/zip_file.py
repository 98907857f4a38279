"""A zip file that strangers' files are in: what may be taken out of it, and no more of it than was allowed."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..notebook import printable
from .opened_folder import is_one_name

_MOST_ENTRIES = 100_000
_MOST_OF_STUDENT = 2_000
"""Files in a zip file that a student packed."""
_BYTES_OF_ENTRY = 400
"""In a zip file's list of files: each entry has 46 and its name."""
_PACKED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Others take the time or the memory that a stranger chooses."""
_LONGEST_NAME = 240  # bytes; a folder's names have 255 on most disks
_DEEPEST = 20
_ENCRYPTED, _IN_UTF8 = 0x1, 0x800
_READ_AT_ONCE = 1 << 18
_OF_PROGRAMS = ("__MACOSX", ".DS_Store", ".ipynb_checkpoints")


_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, RuntimeError, LookupError, ArithmeticError),
)
"""Exceptions that opening and unpacking a damaged file may raise."""


class BadZip(Exception):
    """The zip file cannot be used; `str()` says why."""


class NotTaken(Exception):
    """A file in it cannot be taken out; `str()` says why."""


class _WithShortList:
    """A file of which no more is read at once than a zip file's list of files may have."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._most = most
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            here = self._file.tell()
            size = self._file.seek(0, 2) - here
            self._file.seek(here)
        if size > self._most:
            raise zipfile.BadZipFile("its list of files is too long")
        return self._file.read(size)


class ZipFile:
    """An open zip file, which is closed along with this object."""

    def __init__(self, path: Path, opened: BinaryIO | None = None) -> None:
        """Opens it and reads its list of files; raises BadZip.

        opened: a student's file that is open already, and is closed along with this; `path` is then what it is called.
        """
        most = _MOST_OF_STUDENT if opened else _MOST_ENTRIES
        try:
            self._stream = opened or path.open("rb")
        except OSError as error:
            raise BadZip(f"The file {path} cannot be read: {error.strerror}.") from None
        try:
            self._file = zipfile.ZipFile(_WithShortList(self._stream, most * _BYTES_OF_ENTRY))
        except OSError as error:
            self._stream.close()
            raise BadZip(f"The file {path} cannot be read: {error.strerror}.") from None
        except _DAMAGED as error:
            self._stream.close()
            raise BadZip(f"The file {path} is not a zip file, or is damaged: {error}.") from None
        if len(self._file.filelist) > most:
            self._stream.close()
            raise BadZip(f"The file {path} has more than {most} files in it.")

    @property
    def files(self) -> list[zipfile.ZipInfo]:
        """Entries, nameless ones too, without folders and what programs leave behind."""
        files = [one for one in self._file.filelist if not one.filename.endswith("/")]
        return [one for one in files if not _is_of_a_program(name_of(one))]

    def content(self, one: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
        """A file's content in pieces; raises NotTaken if it has more than so many bytes, whatever its header says."""
        if one.flag_bits & _ENCRYPTED:
            raise NotTaken("it is encrypted")
        if one.compress_type not in _PACKED:
            raise NotTaken("it is packed in an unusual way")
        if stat.S_IFMT(one.external_attr >> 16) not in (0, stat.S_IFREG):
            raise NotTaken("it is not a regular file but a link or the like")
        size = 0
        try:
            with self._file.open(one) as opened:
                while piece := opened.read(_READ_AT_ONCE):
                    size += len(piece)
                    if size > most:
                        raise NotTaken(f"it is larger than {most // 1_000_000} MB")
                    yield piece
        except _DAMAGED as error:
            reason = getattr(error, "strerror", None) or error
            raise NotTaken(f"it cannot be unpacked: {printable(str(reason))[:200]}") from None

    def __enter__(self) -> "ZipFile":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._stream.close()


def name_of(one: zipfile.ZipInfo) -> str:
    """A file's path in the zip, in Unicode also where its program did not say that it is."""
    if not one.flag_bits & _IN_UTF8:
        try:
            return one.filename.encode("cp437").decode()
        except UnicodeError:
            pass
    return one.filename


def path_within(name: str) -> Path:
    """A path in a student's folder from one in a zip file, with what does not show replaced; raises NotTaken."""
    parts = [printable(part) for part in name.split("/") if part]
    if name.startswith("/") or not parts or not all(map(is_one_name, parts)) or len(parts) > _DEEPEST:
        raise NotTaken("its path is not one within a folder")
    if any(len(part.encode()) > _LONGEST_NAME for part in parts):
        raise NotTaken("its name is too long")
    return Path(*parts)


def _is_of_a_program(name: str) -> bool:
    parts = name.split("/")
    return parts[-1].startswith("._") or any(part in _OF_PROGRAMS for part in parts)

"""A zip file that strangers' files are in: what may be taken out of it, and no more of it than was allowed."""

import lzma
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ..handed_in.opened_folder import is_one_name
from ..notebook import printable

_MOST_ENTRIES = 100_000
_LONGEST_NAME = 240  # bytes; a folder's names have 255 on most disks
_DEEPEST = 20
_ENCRYPTED, _IN_UTF8 = 0x1, 0x800
_READ_AT_ONCE = 1 << 18
_OF_PROGRAMS = ("__MACOSX", ".DS_Store", ".ipynb_checkpoints")


class BadZip(Exception):
    """The zip file cannot be used; `str()` says why."""


class NotTaken(Exception):
    """A file in it cannot be taken out; `str()` says why."""


_DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, RuntimeError, LookupError,
)  # fmt: skip
"""What unpacking a file that is none may raise."""


class ZipFile:
    """An open zip file, which is closed along with this object."""

    def __init__(self, path: Path) -> None:
        """Opens it and reads its list of files; raises BadZip."""
        try:
            self._file = zipfile.ZipFile(path)
        except OSError as error:
            raise BadZip(f"The file {path} cannot be read: {error.strerror}.") from None
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise BadZip(f"The file {path} is not a zip file, or is damaged: {error}.") from None
        if len(self._file.filelist) > _MOST_ENTRIES:
            self._file.close()
            raise BadZip(f"The file {path} has more than {_MOST_ENTRIES} files in it.")

    @property
    def files(self) -> list[zipfile.ZipInfo]:
        """What is in it, but for folders and what programs leave behind."""
        return [
            one for one in self._file.filelist if not (one.filename.endswith("/") or _is_of_a_program(name_of(one)))
        ]

    def content(self, one: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
        """A file's content in pieces; raises NotTaken if it has more than so many bytes, whatever its header says."""
        if one.flag_bits & _ENCRYPTED:
            raise NotTaken("it is encrypted")
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
        except (
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            EOFError,
            OSError,
            ValueError,
            RuntimeError,
            LookupError,
        ) as error:
            reason = getattr(error, "strerror", None) or error
            raise NotTaken(f"it cannot be unpacked: {printable(str(reason))[:200]}") from None

    def __enter__(self) -> "ZipFile":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


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

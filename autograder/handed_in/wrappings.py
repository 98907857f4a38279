"""Find and open notebooks in what students put around them: another ending, a folder, a zip file, one within another.

A path leads through folders and zip files: `work/unit.ipynb`, `work.zip/part/unit.ipynb`, `a.zip/b.zip/unit.ipynb`.
Nothing is unpacked into a folder, and no path leads out of the student's folder.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast
from zipfile import ZipInfo

from .opened_folder import NotAFile, OpenedFile, OpenedFolder
from .zip_file import BadZip, NotTaken, ZipFile, name_of, path_within

_ENDINGS = ("", ".txt")
"""Text that may follow a correct notebook name."""
_OF_PROGRAMS = {".ipynb_checkpoints", ".DS_Store", ".git", ".gitignore", ".gitkeep", ".keep", "__MACOSX", "__pycache__"}
"""Files that programs create and nobody submits. Files beginning with `._`, which macOS adds, also belong here."""
_ZIP = b"PK\x03\x04"
_DEEPEST_FOLDER = 2
_MOST_FOLDERS = 20
_MOST_NAMES = 1_000
_DEEPEST_ZIP = 3
_MOST_IN_ZIP = 20
"""Limit for the notebooks of a zip file that are inspected, the newest first."""


class File(Protocol):
    """A file that is read in pieces."""

    @property
    def size(self) -> int:
        """In bytes."""
        ...

    def chunk(self) -> bytes:
        """The next bytes; none at the end."""
        ...


@dataclass
class Allowance:
    """Number of bytes of nested zip files that one search may still unpack."""

    left: int = 64 << 20

    def copy(self, file: ZipFile, info: ZipInfo) -> BinaryIO:
        """Return a copy of a zip file that is in another one; raises NotTaken."""
        copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  closed with the ZipFile that reads it
        try:
            for piece in file.content(info, self.left):
                copy.write(piece)
                self.left -= len(piece)
        except NotTaken:
            copy.close()
            raise
        copy.seek(0)
        return copy


def is_of_a_program(name: str) -> bool:
    """Return whether a file of this name is left behind by a program."""
    return name in _OF_PROGRAMS or name.startswith("._")


def may_be_notebook(name: str, unit: str = "") -> bool:
    """Return whether a file of this name may be a notebook: it says so, is JSON, or is called as the unit's is.

    >>> may_be_notebook("Copy of unit.ipynb.txt")
    True
    """
    plain = name.lower()
    named = unit and plain.startswith(unit.lower()) and os.path.splitext(plain)[1] in _ENDINGS  # noqa: PTH122
    return not name.startswith(".") and (".ipynb" in plain or plain.endswith(".json") or bool(named))


def may_be_submission(name: str, unit: str = "") -> bool:
    """Return whether a file of this name may be a notebook or a zip file with one."""
    return may_be_notebook(name, unit) or (not name.startswith(".") and name.lower().endswith(".zip"))


def possible(folder: OpenedFolder, unit: str, depth: int = 0) -> list[str]:
    """Return the paths of the files that may be the submission, by their names alone; raises OSError."""
    found: list[str] = []
    folders = 0
    for name in folder.names()[:_MOST_NAMES]:
        if is_of_a_program(name) or name.startswith("."):
            continue
        if depth < _DEEPEST_FOLDER and folders < _MOST_FOLDERS and folder.is_folder(name):
            folders += 1
            try:
                with folder.folder(name) as inner:
                    found += [f"{name}/{path}" for path in possible(inner, unit, depth + 1)]
            except OSError:
                continue
        elif may_be_submission(name, unit):
            found.append(name)
    return found


def status(folder: OpenedFolder, path: str) -> os.stat_result | None:
    """Return the status of a file in a folder or in one within it; None if it is not there."""
    try:
        *folders, name = path.split("/")
        with ExitStack() as stack:
            for part in folders:
                folder = stack.enter_context(folder.folder(part))
            return folder.status(name)
    except (OSError, ValueError):
        return None


def notebooks_at(folder: OpenedFolder, path: str, unit: str, allowance: Allowance) -> list[tuple[str, int]]:
    """Return the path and size of each notebook in a zip file, or of the file itself if it is no zip file."""
    try:
        with opened(folder, path, allowance) as file:
            size = file.size
            if not (isinstance(file, OpenedFile) and is_zip(file)):
                return [(path, size)]
            with ZipFile(Path(path), file.stream()) as packed:
                return [(f"{path}/{inner}", size) for inner, size in notebooks_in(packed, unit, allowance)]
    except (BadZip, NotTaken, NotAFile, OSError, ValueError):
        return []


def contents(folder: OpenedFolder, name: str, most: int) -> list[str]:
    """Return the first paths in a folder or a zip file, for a message; empty for anything else."""
    try:
        if folder.is_folder(name):
            with folder.folder(name) as inner:
                return inner.names()[:most]
        with folder.file(name) as file:
            if not is_zip(file):
                return []
            with ZipFile(Path(name), file.stream()) as packed:
                return sorted(name_of(info) for info in packed.files)[:most]
    except (BadZip, NotAFile, OSError, ValueError):
        return []


def is_zip(file: OpenedFile) -> bool:
    """Return whether a file is a zip file, by its first bytes."""
    return file.beginning(len(_ZIP)) == _ZIP


def notebooks_in(file: ZipFile, unit: str, allowance: Allowance, depth: int = 1) -> list[tuple[str, int]]:
    """Return the path and size of the notebooks in a zip file, the newest first."""
    found = []
    for info in file.files:
        name = name_of(info)
        if not _is_plain(name):
            continue
        if not name.lower().endswith(".zip"):
            if may_be_notebook(name.rpartition("/")[2], unit):
                found.append((info.date_time, name, info.file_size))
        elif depth < _DEEPEST_ZIP:
            try:
                with ZipFile(Path(name), allowance.copy(file, info)) as inner:
                    within = notebooks_in(inner, unit, allowance, depth + 1)
            except (BadZip, NotTaken):
                continue
            found += [(info.date_time, f"{name}/{path}", size) for path, size in within]
    return [(name, size) for _, name, size in sorted(found, reverse=True)[:_MOST_IN_ZIP]]


@contextmanager
def opened(folder: OpenedFolder, path: str, allowance: Allowance | None = None) -> Iterator[File]:
    """Open the file at a path from a student's folder; raises NotAFile, OSError, ValueError, BadZip and NotTaken."""
    with ExitStack() as stack:
        name, _, rest = path.partition("/")
        while rest and folder.is_folder(name):
            folder = stack.enter_context(folder.folder(name))
            name, _, rest = rest.partition("/")
        file = stack.enter_context(folder.file(name))
        yield stack.enter_context(unpacked(file, rest, allowance)) if rest else file


@contextmanager
def unpacked(file: OpenedFile, rest: str, allowance: Allowance | None = None) -> Iterator[File]:
    """Open the file at a path in a zip file; raises OSError, BadZip and NotTaken."""
    allowance = allowance or Allowance()
    with ExitStack() as stack:
        packed = stack.enter_context(ZipFile(Path("submission"), file.stream()))
        while (info := _named(packed, rest)) is None:
            outer = next((one for one in packed.files if rest.startswith(f"{name_of(one)}/")), None)
            if outer is None:
                raise FileNotFoundError
            rest = rest[len(name_of(outer)) + 1 :]
            packed = stack.enter_context(ZipFile(Path(name_of(outer)), allowance.copy(packed, outer)))
        yield _Member(packed, info)


class _Member:
    """A file in a zip file."""

    def __init__(self, file: ZipFile, info: ZipInfo) -> None:
        self.size = info.file_size
        self._pieces = file.content(info, info.file_size)

    def chunk(self) -> bytes:
        """The next bytes; raises NotTaken."""
        return next(self._pieces, b"")


def _named(file: ZipFile, path: str) -> ZipInfo | None:
    return next((info for info in file.files if name_of(info) == path), None)


def _is_plain(name: str) -> bool:
    """Return whether a path in a zip file stays inside the folder that the file is unpacked into."""
    try:
        return bool(path_within(name))
    except NotTaken:
        return False

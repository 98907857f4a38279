"""Find and open notebooks that students wrapped: with another ending, in a folder, in a zip file, or in a nested one.

A path leads through folders and zip files: `work/unit.ipynb`, `work.zip/part/unit.ipynb`, `a.zip/b.zip/unit.ipynb`.
Nothing is unpacked into a folder, and no path leads out of the student's folder.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast
from zipfile import ZipInfo

from .submitted_folder import NotAFile, OpenedFolder, size_of
from .zip_file import BadZip, NotTaken, ZipFile, path_within

UNREADABLE = (BadZip, NotTaken, NotAFile, OSError, ValueError)
"""The exceptions that opening and reading a student's file may raise."""
_CHUNK = 1 << 18
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


@dataclass
class File:
    """A file that is read in chunks."""

    size: int
    """Size in bytes when the file was opened; a student's program may extend it meanwhile."""
    chunks: Iterator[bytes]
    archive: BufferedReader | None = None
    """The open file, if it is a zip file and not itself in one."""

    @classmethod
    def of(cls, file: BufferedReader) -> "File":
        """Read an open file."""
        is_zip = os.pread(file.fileno(), len(_ZIP), 0) == _ZIP
        return cls(size_of(file), iter(partial(file.read, _CHUNK), b""), file if is_zip else None)


@dataclass
class Allowance:
    """Number of bytes of nested zip files that one search may still unpack."""

    left: int = 64 << 20

    def open(self, file: ZipFile, info: ZipInfo) -> ZipFile:
        """Open a zip file that is in another one; raises BadZip and NotTaken."""
        with ExitStack() as stack:
            copy = cast(BinaryIO, stack.enter_context(tempfile.TemporaryFile()))
            for chunk in file.content(info, self.left):
                copy.write(chunk)
                self.left -= len(chunk)
            copy.seek(0)
            stack.pop_all()
        return ZipFile(Path(info.filename), copy)


def is_of_a_program(name: str) -> bool:
    """Return whether a file of this name is left behind by a program."""
    return name in _OF_PROGRAMS or name.startswith("._")


def possible(folder: OpenedFolder, unit: str, depth: int = 0) -> list[str]:
    """Return the paths of the files that may be the submission, by their names only; raises OSError."""
    paths: list[str] = []
    folders = 0
    for name in folder.names()[:_MOST_NAMES]:
        if is_of_a_program(name) or name.startswith("."):
            continue
        if depth < _DEEPEST_FOLDER and folders < _MOST_FOLDERS and folder.is_folder(name):
            folders += 1
            try:
                with folder.folder(name) as inner:
                    paths += [f"{name}/{path}" for path in possible(inner, unit, depth + 1)]
            except OSError:
                continue
        elif _is_notebook_name(name, unit) or name.lower().endswith(".zip"):
            paths.append(name)
    return paths


def _is_notebook_name(name: str, unit: str) -> bool:
    """Return whether a file of this name may be a notebook: an `.ipynb`, JSON, or called like the unit's notebook.

    >>> _is_notebook_name("Copy of unit.ipynb.txt", "")
    True
    """
    lower = name.lower()
    is_like_unit = unit and lower.startswith(unit.lower()) and os.path.splitext(lower)[1] in _ENDINGS  # noqa: PTH122
    return not name.startswith(".") and (".ipynb" in lower or lower.endswith(".json") or bool(is_like_unit))


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
            if not file.archive:
                return [(path, file.size)]
            with ZipFile(Path(path), file.archive) as archive:
                return [(f"{path}/{inner}", size) for inner, size in notebooks_in(archive, unit, allowance)]
    except UNREADABLE:
        return []


def contents(folder: OpenedFolder, name: str, most: int) -> list[str]:
    """Return the first paths in a folder or a zip file, for a message; empty for any other file."""
    try:
        if folder.is_folder(name):
            with folder.folder(name) as inner:
                return inner.names()[:most]
        with opened(folder, name) as file:
            if not file.archive:
                return []
            with ZipFile(Path(name), file.archive) as archive:
                return sorted(info.filename for info in archive.files)[:most]
    except UNREADABLE:
        return []


def notebooks_in(file: ZipFile, unit: str, allowance: Allowance, depth: int = 1) -> list[tuple[str, int]]:
    """Return the path and size of the notebooks in a zip file, the newest first."""
    found = []
    for info in file.files:
        name = info.filename
        try:
            path_within(name)
            if not name.lower().endswith(".zip"):
                if _is_notebook_name(name.rpartition("/")[2], unit):
                    found.append((info.date_time, name, info.file_size))
            elif depth < _DEEPEST_ZIP:
                with allowance.open(file, info) as inner:
                    within = notebooks_in(inner, unit, allowance, depth + 1)
                found += [(info.date_time, f"{name}/{path}", size) for path, size in within]
        except (BadZip, NotTaken):
            continue
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
        if rest:
            archive = stack.enter_context(ZipFile(Path("submission"), file))
            yield stack.enter_context(unpacked(archive, rest, allowance))
        else:
            yield File.of(file)


@contextmanager
def unpacked(archive: ZipFile, path: str, allowance: Allowance | None = None) -> Iterator[File]:
    """Open the file at a path in a zip file; raises OSError, BadZip and NotTaken."""
    allowance = allowance or Allowance()
    with ExitStack() as stack:
        while (info := _entry(archive, path)) is None:
            outer = next((info for info in archive.files if path.startswith(f"{info.filename}/")), None)
            if outer is None:
                raise FileNotFoundError
            path = path[len(outer.filename) + 1 :]
            archive = stack.enter_context(allowance.open(archive, outer))
        yield File(info.file_size, archive.content(info, info.file_size))


def _entry(archive: ZipFile, path: str) -> ZipInfo | None:
    return next((info for info in archive.files if info.filename == path), None)

"""Find and read submitted notebooks, even with another file ending, in a folder, or in a zip file, which may be nested.

A path may lead through folders and zip files: `work/unit.ipynb`, `work.zip/part/unit.ipynb`, `a.zip/b.zip/unit.ipynb`.
Nothing is unpacked into a folder, and no path can lead out of the student's folder. Each file is read once, and only
the parts that grading needs are kept.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, BytesIO
from pathlib import Path
from zipfile import ZipInfo

from .notebook import CLEAR, UnreadableNotebook, without_outputs
from .submitted_files import BadZip, NotAFile, NotTaken, OpenedFolder, ZipFile, file_at, path_within, size_of

UNREADABLE = (BadZip, NotTaken, NotAFile, OSError, ValueError)
"""The exceptions that opening and reading a student's file may raise."""
_CHUNK = 1 << 18
_ENDINGS = ("", ".txt")
"""File endings with which a file that is named like the unit may be a notebook."""
_OF_PROGRAMS = {".ipynb_checkpoints", ".DS_Store", ".git", ".gitignore", ".gitkeep", ".keep", "__MACOSX", "__pycache__"}
"""Names of files and folders that programs create and that are no part of a submission."""
_ZIP = b"PK\x03\x04"
_DEEPEST_FOLDER = 2
_MOST_FOLDERS = 20
_MOST_NAMES = 1_000
_DEEPEST_ZIP = 3
_MOST_IN_ZIP = 20
"""Most notebooks of a zip file that are returned; the newest are preferred."""
MAX_FILE_BYTES = 256 << 20


@dataclass
class File:
    """A student's open file, also one within a zip file. Its content comes in chunks."""

    size: int
    """Size in bytes when the file was opened; a student's program may extend the file later."""
    chunks: Iterator[bytes]
    archive: BufferedReader | None = None
    """The open file, if it is a zip file that is not inside another one; otherwise None."""

    @classmethod
    def of(cls, file: BufferedReader) -> "File":
        """Return an open file as a `File`."""
        is_zip = os.pread(file.fileno(), len(_ZIP), 0) == _ZIP
        return cls(size_of(file), iter(partial(file.read, _CHUNK), b""), file if is_zip else None)


@dataclass
class Allowance:
    """Limit for the bytes that one search unpacks from nested zip files; `left` is the number still allowed."""

    left: int = 64 << 20

    def open(self, file: ZipFile, info: ZipInfo) -> ZipFile:
        """Open a zip file that is inside another one, and subtract its size from `left`; raises BadZip and NotTaken.

        file: the outer zip file. info: the inner one's entry in it.
        """
        copy = BytesIO()
        for chunk in file.content(info, self.left):
            self.left -= copy.write(chunk)
        copy.seek(0)
        return ZipFile(Path(info.filename), copy)


def is_of_a_program(name: str) -> bool:
    """Return whether a file or folder of this name was created by a program, and so is no part of a submission."""
    return name in _OF_PROGRAMS or name.startswith("._")


def possible(folder: OpenedFolder, unit: str, depth: int = 0) -> list[str]:
    """Return the paths of files in a student's folder whose names suggest a notebook or a zip file; raises OSError.

    depth: number of folders between the student's folder and this one.
    """
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
    """Return whether a file may be a notebook, by its name: with `.ipynb`, ending in `.json`, or named like the unit.

    >>> _is_notebook_name("Copy of unit.ipynb.txt", "")
    True
    """
    lower = name.lower()
    is_like_unit = unit and lower.startswith(unit.lower()) and os.path.splitext(lower)[1] in _ENDINGS  # noqa: PTH122
    return not name.startswith(".") and (".ipynb" in lower or lower.endswith(".json") or bool(is_like_unit))


def status(folder: OpenedFolder, path: str) -> os.stat_result | None:
    """Return the status of the file at a path in a folder; None if there is no such file."""
    try:
        *folders, name = path.split("/")
        with ExitStack() as stack:
            for part in folders:
                folder = stack.enter_context(folder.folder(part))
            return folder.status(name)
    except (OSError, ValueError):
        return None


def notebooks_at(folder: OpenedFolder, path: str, unit: str, allowance: Allowance) -> list[tuple[str, int]]:
    """Return path and size in bytes of the file at a path or, if it is a zip file, of each notebook in it.

    Return an empty list if the file cannot be read. folder: the student's. unit: its name.
    """
    try:
        with opened(folder, path, allowance) as file:
            if not file.archive:
                return [(path, file.size)]
            with ZipFile(Path(path), file.archive) as archive:
                return [(f"{path}/{inner}", size) for inner, size in notebooks_in(archive, unit, allowance)]
    except UNREADABLE:
        return []


def contents(folder: OpenedFolder, name: str, most: int) -> list[str]:
    """Return up to `most` paths of files in a folder or a zip file, for a message; empty for any other file."""
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
    """Return path and size in bytes of the notebooks in a zip file and the zip files within it, the newest first."""
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
    """Open the file at a path in a student's folder; raises NotAFile, OSError, ValueError, BadZip and NotTaken.

    The path may lead through folders and zip files.
    """
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
    """Open the file at a path in a zip file, also through nested zip files; raises OSError, BadZip and NotTaken."""
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


@dataclass(frozen=True)
class NotebookFile:
    """A submitted notebook's file, after reading it."""

    content: bytes | UnreadableNotebook
    """The parts of the notebook that grading needs, in UTF-8 and without outputs; or why it cannot be graded."""
    digest: str = ""
    """SHA-256 of the whole file, in hexadecimal digits; empty if the file was not read to its end."""
    is_read: bool = True
    """False if there is no file, or if it could not be read."""


def read_in(folder: OpenedFolder, name: str) -> NotebookFile:
    """Read the notebook at a path in a student's folder; the path may lead through folders and zip files."""
    return _read(opened(folder, name))


def read_at(path: Path) -> NotebookFile:
    """Read the notebook at a path that the instructor, not a student, chose."""
    return _read(_opened_at(path))


def digest_in(folder: OpenedFolder, name: str) -> str:
    """Return the digest of a submitted file, as in `NotebookFile`; empty if the file is too large or unreadable."""
    try:
        with opened(folder, name) as file:
            digest = hashlib.sha256()
            for chunk in _chunks(file):
                digest.update(chunk)
            return digest.hexdigest()
    except (*UNREADABLE, _Refused):
        return ""


def unreadable(error: Exception) -> NotebookFile:
    """Return the result for a file that cannot be opened or read, with a message to the student. error: the reason."""
    if isinstance(error, NotAFile | NotADirectoryError):
        message = "This is not a regular file. Submit the notebook itself, not a link or a folder."
    else:
        message = f"The file cannot be read: {getattr(error, 'strerror', None) or error}."
    return NotebookFile(UnreadableNotebook(message), is_read=False)


class _Refused(Exception):
    """Raised if a file can be read but not graded; `str()` is the message to the student."""


@contextmanager
def _opened_at(path: Path) -> Iterator[File]:
    with file_at(path) as file:
        yield File.of(file)


def _read(context: AbstractContextManager[File]) -> NotebookFile:
    digest, is_zip = hashlib.sha256(), False
    try:
        with context as file:
            is_zip = bool(file.archive)
            content = _only_notebook(file.archive, file, digest) if file.archive else _content(file, digest)
    except _Refused as reason:
        return NotebookFile(UnreadableNotebook(str(reason)), digest.hexdigest() if is_zip else "")
    except UNREADABLE as error:
        return unreadable(error)
    return NotebookFile(content, digest.hexdigest())


def _only_notebook(stream: BufferedReader, file: File, digest: "hashlib._Hash") -> bytes | UnreadableNotebook:
    """Return the content of the only notebook in a zip file; raises _Refused if it has not exactly one.

    digest: updated with the whole zip file.
    """
    for chunk in _chunks(file):
        digest.update(chunk)
    with ZipFile(Path("submission"), stream) as archive:
        paths = [path for path, _ in notebooks_in(archive, "", Allowance())]
        if len(paths) != 1:
            number = f"{len(paths)} notebooks" if paths else "no notebook"
            raise _Refused(f"This is a zip file with {number} in it. Submit the notebook itself.")
        with unpacked(archive, paths[0]) as notebook:
            return _content(notebook, hashlib.sha256())


def _content(file: File, digest: "hashlib._Hash") -> bytes | UnreadableNotebook:
    """Return a notebook's content without outputs, in UTF-8; raises _Refused. digest: updated with the whole file."""
    content = bytearray()
    for chunk in _chunks(file):
        digest.update(chunk)
        content += chunk
    encoding = json.detect_encoding(bytes(content[:4]))
    if not encoding.startswith("utf-8"):  # some editors save notebooks in UTF-16
        content = bytearray(content.decode(encoding, "replace").encode("utf-8", "replace"))
    return without_outputs(content)


def _chunks(file: File) -> Iterator[bytes]:
    """Yield a file's content in chunks; raises _Refused once the file has more than MAX_FILE_BYTES."""
    length = file.size
    if length <= MAX_FILE_BYTES:
        length = 0
        for chunk in file.chunks:
            length += len(chunk)
            if length > MAX_FILE_BYTES:
                break
            yield chunk
    if length > MAX_FILE_BYTES:
        raise _Refused(f"The file has {_megabytes(length)}, more than {_megabytes(MAX_FILE_BYTES)}. {CLEAR}")


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MB"

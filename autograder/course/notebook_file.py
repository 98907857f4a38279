"""Read a submitted notebook file once, and keep only the parts of it that grading needs: see `without_outputs`."""

import codecs
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from .notebook import MAX_BYTES, UnreadableNotebook
from .notebook_candidates import UNREADABLE, Allowance, File, notebooks_in, opened, unpacked
from .submitted_folder import NotAFile, OpenedFolder, file_at
from .without_outputs import TooManyParts, WithoutOutputs
from .zip_file import ZipFile

MAX_FILE_BYTES = 256 << 20
_CLEAR = "Clear the outputs (Kernel, Restart and Clear Outputs) and save it again."


@dataclass(frozen=True)
class NotebookFile:
    """A submitted notebook. `content` has only the parts that grading needs, in UTF-8 and without outputs."""

    content: bytes | UnreadableNotebook
    digest: str = ""
    """SHA-256 of the whole file, in hexadecimal digits; empty if it is too large to be read to its end."""
    is_read: bool = True
    """True if there is a file and it could be read."""


def read_in(folder: OpenedFolder, name: str) -> NotebookFile:
    """Read the notebook at a path in a student's folder, which may lead through folders and zip files."""
    return _read(opened(folder, name))


def read_at(path: Path) -> NotebookFile:
    """Read the notebook at a path that the instructor gave."""
    return _read(_opened_at(path))


def digest_in(folder: OpenedFolder, name: str) -> str:
    """Return the digest that `read_in` would return, without scanning the file; empty if the file is too large."""
    try:
        with opened(folder, name) as file:
            digest = hashlib.sha256()
            for chunk in _chunks(file):
                digest.update(chunk)
            return digest.hexdigest()
    except (*UNREADABLE, _Refused):
        return ""


def unreadable(error: Exception) -> NotebookFile:
    """Return the result for a file that cannot be opened or read, or whose folder cannot."""
    if isinstance(error, NotAFile | NotADirectoryError):
        message = "This is not a regular file. Hand in the notebook itself, not a link or a folder."
    else:
        message = f"The file cannot be read: {getattr(error, 'strerror', None) or error}."
    return NotebookFile(UnreadableNotebook(message), is_read=False)


class _Refused(Exception):
    """A file that can be read but not graded; `str()` is the message to the student."""


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


def _only_notebook(stream: BufferedReader, file: File, digest: "hashlib._Hash") -> bytes:
    """Return the content of the only notebook in a zip file; the digest is the zip file's."""
    for chunk in _chunks(file):
        digest.update(chunk)
    with ZipFile(Path("submission"), stream) as archive:
        paths = [path for path, _ in notebooks_in(archive, "", Allowance())]
        if len(paths) != 1:
            number = f"{len(paths)} notebooks" if paths else "no notebook"
            raise _Refused(f"This is a zip file with {number} in it. Hand in the notebook itself.")
        with unpacked(archive, paths[0]) as notebook:
            return _content(notebook, hashlib.sha256())


def _content(file: File, digest: "hashlib._Hash") -> bytes:
    """Return a notebook's content without outputs, in UTF-8; raises _Refused."""
    without_outputs = WithoutOutputs()
    pieces: list[bytes] = []
    length = 0
    in_utf8: Callable[[bytes], bytes] | None = None
    for chunk in _chunks(file):
        digest.update(chunk)
        if in_utf8 is None:
            in_utf8, chunk = _to_utf8(chunk), chunk.removeprefix(codecs.BOM_UTF8)
        try:
            pieces.append(without_outputs.feed(in_utf8(chunk)))
        except TooManyParts:
            size = _megabytes(file.size)
            raise _Refused(f"The file ({size}) has too many parts to be looked through. {_CLEAR}") from None
        length += len(pieces[-1])
        if length - without_outputs.pictures > MAX_BYTES:
            raise _Refused(
                f"The file has {_megabytes(file.size)}, more than {MAX_BYTES >> 20} MB of it outside the outputs. "
                "Take out what is not needed, such as long data in a cell, and save it again."
            )
    return b"".join([*pieces, without_outputs.end()])


def _to_utf8(beginning: bytes) -> Callable[[bytes], bytes]:
    """Return a function that converts a file's chunks to UTF-8. Some editors save UTF-16."""
    encoding = json.detect_encoding(beginning)
    if encoding.startswith("utf-8"):
        return bytes
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return lambda chunk: decoder.decode(chunk).encode("utf-8", "replace")


def _chunks(file: File) -> Iterator[bytes]:
    """Yield a file's content in chunks; raises _Refused if it is too large, even if it grows meanwhile."""
    length = file.size
    if length <= MAX_FILE_BYTES:
        length = 0
        for chunk in file.chunks:
            length += len(chunk)
            if length > MAX_FILE_BYTES:
                break
            yield chunk
    if length > MAX_FILE_BYTES:
        raise _Refused(f"The file has {_megabytes(length)}, more than {_megabytes(MAX_FILE_BYTES)}. {_CLEAR}")


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MB"

"""A notebook file that was handed in: it is read once, and no more of it is kept than marking can need."""

import codecs
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..notebook import MAX_BYTES, Damaged
from .opened_folder import NotAFile, OpenedFile, OpenedFolder, file_at
from .without_outputs import TooManyParts, WithoutOutputs
from .wrappings import Allowance, File, is_zip, notebooks_in, opened, unpacked
from .zip_file import BadZip, NotTaken, ZipFile

MAX_FILE_BYTES = 256 << 20
_CLEAR = "Clear the outputs (Kernel, Restart and Clear Outputs) and save it again."


@dataclass(frozen=True)
class NotebookFile:
    """A submitted notebook. `content` has only the parts that grading needs, in UTF-8 and without outputs."""

    content: bytes | Damaged
    """Damaged where there is no file of a sensible size."""
    digest: str = ""
    """SHA-256 of the whole file, in hexadecimal digits; empty where there is nothing to mark."""
    is_read: bool = True
    """Whether there is a file, and it could be read."""


def read_in(folder: OpenedFolder, name: str) -> NotebookFile:
    """The notebook at this path in a student's folder, which may lead through folders and zip files."""
    try:
        with opened(folder, name) as file:
            return _read(file)
    except (NotAFile, OSError, ValueError, BadZip, NotTaken) as error:
        return unreadable(error)


def digest_in(folder: OpenedFolder, name: str) -> str:
    """The digest of the notebook of this name, whether or not it can be marked; empty where there is none of a size.

    Nothing is taken out of it, which may take seconds.
    """
    digest, length = hashlib.sha256(), 0
    try:
        with opened(folder, name) as file:
            while length <= MAX_FILE_BYTES and file.size <= MAX_FILE_BYTES and (chunk := file.chunk()):
                length += len(chunk)
                digest.update(chunk)
            return digest.hexdigest() if max(length, file.size) <= MAX_FILE_BYTES else ""
    except (NotAFile, OSError, ValueError, BadZip, NotTaken):
        return ""


def read_at(path: Path) -> NotebookFile:
    """The notebook at a path that the instructor gave."""
    try:
        with file_at(path) as file:
            return _read(file)
    except (NotAFile, OSError, ValueError, BadZip, NotTaken) as error:
        return unreadable(error)


def unreadable(error: Exception) -> NotebookFile:
    """A file that cannot be opened or read, or whose folder cannot."""
    if isinstance(error, NotAFile | NotADirectoryError):
        sentence = "This is not a regular file. Hand in the notebook itself, not a link or a folder."
    else:
        sentence = f"The file cannot be read: {getattr(error, 'strerror', None) or error}."
    return NotebookFile(Damaged(sentence), is_read=False)


def _damaged(sentence: str) -> NotebookFile:
    return NotebookFile(Damaged(sentence))


def _read(file: File) -> NotebookFile:
    if file.size > MAX_FILE_BYTES:
        return _too_large(file.size)
    if isinstance(file, OpenedFile) and is_zip(file):
        return _unpacked(file)
    digest = hashlib.sha256()
    pieces: list[bytes] = []
    length = kept = 0
    filtered = WithoutOutputs()
    in_utf8: Callable[[bytes], bytes] | None = None
    while chunk := file.chunk():
        length += len(chunk)
        digest.update(chunk)
        if length > MAX_FILE_BYTES:  # it has grown meanwhile
            return _too_large(length)
        in_utf8 = in_utf8 or _to_utf8(chunk)
        try:
            pieces.append(filtered.feed(in_utf8(chunk)))
        except TooManyParts:
            size = _megabytes(file.size)
            return _damaged(f"The file ({size}) has too many parts to be looked through. {_CLEAR}")
        kept += len(pieces[-1])
        if kept - filtered.pictures > MAX_BYTES:
            return _damaged(
                f"The file has {_megabytes(file.size)}, more than {MAX_BYTES >> 20} MB of it outside the outputs. "
                "Take out what is not needed, such as long data in a cell, and save it again."
            )
    pieces.append(filtered.end())
    return NotebookFile(b"".join(pieces), digest.hexdigest())


def _unpacked(file: OpenedFile) -> NotebookFile:
    """The only notebook in a zip file that has a notebook's name; its digest is the zip file's."""
    digest = hashlib.sha256()
    while chunk := file.chunk():
        digest.update(chunk)
    with ZipFile(Path("submission"), file.stream()) as packed:
        paths = [path for path, _ in notebooks_in(packed, "", Allowance())]
    if len(paths) != 1:
        number = f"{len(paths)} notebooks" if paths else "no notebook"
        return _damaged(f"This is a zip file with {number} in it. Hand in the notebook itself.")
    with unpacked(file, paths[0]) as notebook:
        return replace(_read(notebook), digest=digest.hexdigest())


def _to_utf8(beginning: bytes) -> Callable[[bytes], bytes]:
    """Return a function that turns a file's bytes, piece by piece, into UTF-8 without a byte order mark.

    Notebooks are UTF-8, but some editors save UTF-16.
    """
    encoding = json.detect_encoding(beginning)
    if encoding == "utf-8":
        return bytes
    if encoding == "utf-8-sig":
        left = [len(codecs.BOM_UTF8)]
        return lambda piece: piece[left.pop() :] if left else piece
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return lambda piece: decoder.decode(piece).encode("utf-8", "replace")


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MB"


def _too_large(size: int) -> NotebookFile:
    return _damaged(f"The file has {_megabytes(size)}, more than {MAX_FILE_BYTES >> 20} MB. {_CLEAR}")

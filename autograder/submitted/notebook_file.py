"""Read a submitted notebook file once, and keep only the parts of it that grading needs.

Outputs may be of any size and contain anything, so they are replaced by `null` before the JSON is decoded: in them only
the end of each value is searched for. Everything that `course.notebook.parse` uses is kept as it is. So invalid JSON
stays invalid, and nothing in an output, be it `NaN` or half of a surrogate pair, can damage a notebook.
"""

import codecs
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

from ..course.notebook import MAX_BYTES, UnreadableNotebook
from .candidates import UNREADABLE, Allowance, File, notebooks_in, opened, unpacked
from .folder import NotAFile, OpenedFolder, file_at
from .zip_file import ZipFile

MAX_FILE_BYTES = 256 << 20
MOST_PICTURES = 12 << 20
"""Limit for the bytes in base64 of a notebook's inline pictures and attachments together; the rest is cut."""
CUT = b"!"
"""Ends a picture that was cut; base64 never contains it."""
_MOST_PARTS = 8_000_000
"""Limit for the brackets in dropped values that are processed one by one, in about 5 seconds."""
_WEIGHT_OF_MEMBER = 4
"""Brackets that take as long as a member or element of a value that is kept."""
_CLEAR = "Clear the outputs (Kernel, Restart and Clear Outputs) and save it again."

_CELL: dict[bytes, Any] = dict.fromkeys((b"cell_type", b"source", b"id", b"attachments", b"input", b"level"))
_CELL[b"metadata"] = dict.fromkeys((b"nbgrader", b"autograder"))
_NOTEBOOK = {b"nbformat": None, b"cells": _CELL, b"worksheets": {b"cells": _CELL}}
"""The members of a notebook that are kept, with the members that are kept of those; None for all."""

# Repeated groups are atomic, see `course.notebook`. A missing quote at the end is tolerated.
_STRING = rb'"[^"\\]*+(?:(?>\\.[^"\\]*+))*+"?'
_FLAT = rb'[^"\[\]{}]*+(?:(?>' + _STRING + rb'[^"\[\]{}]*+))*+'
_NEXT_BRACKET = re.compile(_FLAT + rb"(?:(?>[\[{]" + _FLAT + rb"[\]}]" + _FLAT + rb"))*+([\[\]{}]|\Z)", re.S)
"""Skips strings and pairs of brackets without brackets in them."""
_SCALAR = re.compile(_STRING + rb'|[^\s,:"\[\]{}]*+', re.S)
_NEXT_PART = re.compile(rb'[^"\[\]{}]*+(?:"([^"\\]*+)"\s*+:\s*+)?+')
"""Matches up to a value, a bracket or the end, with the name of the value if it has one."""
_INLINE_PICTURE = re.compile(rb"(;base64,)([A-Za-z0-9+/=]++)")
_ATTACHED_PICTURE = re.compile(rb'(")([A-Za-z0-9+/=]{100,}+)')

_one_file = threading.Lock()
"""Held while a file is in memory, so that requests to `serve` do not hold many of 256 MB at once."""


@dataclass(frozen=True)
class NotebookFile:
    """A submitted notebook. `content` has only the parts that grading needs, in UTF-8 and without outputs."""

    content: bytes | UnreadableNotebook
    digest: str = ""
    """SHA-256 of the whole file, in hexadecimal digits; empty if there is nothing to grade."""
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
    digest = hashlib.sha256()
    try:
        with _one_file, context as file:
            content = _only_notebook(file.archive, file, digest) if file.archive else _content(file, digest)
    except _Refused as reason:
        return NotebookFile(UnreadableNotebook(str(reason)))
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
    """Return a notebook's content without outputs, in UTF-8; raises _Refused. Some editors save UTF-16."""
    buffer = BytesIO()
    decoder = None
    for chunk in _chunks(file):
        digest.update(chunk)
        if not buffer.tell() and not (encoding := json.detect_encoding(chunk)).startswith("utf-8"):
            decoder = codecs.getincrementaldecoder(encoding)("replace")
        buffer.write(decoder.decode(chunk).encode() if decoder else chunk)
    size = _megabytes(file.size)
    try:
        reduced = WithoutOutputs(buffer.getvalue())
    except TooManyParts:
        raise _Refused(f"The file ({size}) has too many parts to be looked through. {_CLEAR}") from None
    if len(reduced.content) - reduced.pictures > MAX_BYTES:
        raise _Refused(
            f"The file has {size}, more than {MAX_BYTES >> 20} MB of it outside the outputs. "
            "Take out what is not needed, such as long data in a cell, and save it again."
        )
    return reduced.content


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


class TooManyParts(Exception):
    """The file has more brackets and names than can be processed."""


class WithoutOutputs:
    """A notebook's JSON with `null` for the values that grading does not need. Raises TooManyParts.

    >>> WithoutOutputs(b'{"cells": [{"source": "1", "outputs": [NaN]}]}').content
    b'{"cells": [{"source": "1", "outputs": null}]}'
    """

    def __init__(self, content: bytes) -> None:
        self._json = content
        self._copied = 0
        """Position up to which the JSON is copied or replaced."""
        self._kept: list[bytes] = []
        self._parts = 0
        self.pictures = 0
        """Number of bytes in base64 of the pictures that are kept."""
        self._filter(_match(re.compile(rb"[^{]*+"), content, 0).end(), _NOTEBOOK)
        self._copy(len(content))
        self.content = b"".join(self._kept)

    def _filter(self, position: int, wanted: dict[bytes, Any] | None) -> int:
        """Drop the unneeded members of the value at a position; return the position of its end.

        wanted: the members that are kept, of the object or of each object in a list; None for all.
        """
        opening = self._json[position : position + 1]
        if wanted is None or opening not in (b"[", b"{"):
            return self._end(position)
        position += 1
        while True:
            self._count(_WEIGHT_OF_MEMBER)
            part = _match(_NEXT_PART, self._json, position)
            name, start = part[1], part.end()
            value = self._json[start : start + 1]
            if name is None and value in b"]}":  # or the end
                return start + len(value)
            if name is None:
                position = self._filter(start, wanted if opening + value == b"[{" else None)
            elif name not in wanted:
                self._copy(start)
                self._kept.append(b"null")
                self._copied = position = self._end(start)
            else:
                position = self._filter(start, wanted[name])
                if name == b"attachments":
                    self._copy(start)
                    self._copy(position, _ATTACHED_PICTURE)

    def _end(self, position: int) -> int:
        """Return the position of the end of the value at a position."""
        if self._json[position : position + 1] not in (b"[", b"{"):
            return _match(_SCALAR, self._json, position).end()
        depth = 1
        for bracket in _NEXT_BRACKET.finditer(self._json, position + 1):
            self._count(1)
            depth += 1 if bracket[1] in (b"[", b"{") else -1
            if not depth or not bracket[1]:
                return bracket.end()
        return len(self._json)

    def _count(self, weight: int) -> None:
        self._parts += weight
        if self._parts > _MOST_PARTS:
            raise TooManyParts

    def _copy(self, end: int, picture: re.Pattern[bytes] = _INLINE_PICTURE) -> None:
        """Keep the JSON up to a position, except for the pictures beyond MOST_PICTURES."""
        self._kept.append(picture.sub(self._cut, self._json[self._copied : end]))
        self._copied = end

    def _cut(self, picture: re.Match[bytes]) -> bytes:
        kept = picture[2][: MOST_PICTURES - self.pictures]
        self.pictures += len(kept)
        return picture[1] + kept + (CUT if len(kept) < len(picture[2]) else b"")


def _match(pattern: re.Pattern[bytes], text: bytes, position: int) -> re.Match[bytes]:
    """Match a pattern that matches anywhere."""
    match = pattern.match(text, position)
    assert match
    return match

"""Has notebooks marked by an `autograder serve` that runs: it is warm, and a marking process takes seconds to be so."""

import http.client
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TypeVar
from urllib.parse import quote

import msgspec

from ..course.settings import Settings
from ..report import Report, without_marks
from ..sandbox.isolation import NotIsolated, exposed_in
from ..submitted.folder import NotAFile, file_at
from ..submitted.notebook_file import MAX_FILE_BYTES, read_at
from .marker import in_utf8
from .requests import Device, Ready
from .serving_socket import short, sockets
from .terms import on_device, terms

_ASKING_SECONDS, _MARKING_SECONDS = 5.0, 320.0
"""`serve` itself gives a request a little less."""
_IN_MEMORY = 16 << 20
"""Bytes of a notebook; one that is larger is kept in a temporary file on its way."""
T = TypeVar("T")


class NotServed(Exception):
    """No `serve` marks it: mark it otherwise."""


class Served:
    """A marker that belongs to `serve`."""

    def __init__(self, path: Path, its_terms: str) -> None:
        """path: of the socket. Raises NotServed where nobody answers there, or marks on other terms."""
        self._path = path
        self._terms = its_terms
        self.ready: Ready = self._decoded(self._asked(f"/ready?terms={its_terms}"), Ready)
        """The device and the isolation level."""

    def mark_file(self, path: Path) -> Report:
        """The report on a notebook file, under the path as it is given. Raises NotServed."""
        name = in_utf8(str(path))
        try:
            with file_at(path) as file, SpooledTemporaryFile(_IN_MEMORY) as read:
                length = 0  # what a system says of a file's size need not be what is read
                while piece := file.read(1 << 18):
                    length += read.write(piece)
                    if length > MAX_FILE_BYTES:
                        raise NotServed
                read.seek(0)
                place = f"/marks?terms={self._terms}&name={quote(name)}"
                return self._decoded(self._asked(place, read, length), Report)
        except (NotAFile, OSError, ValueError):
            file_read = read_at(path)
            if file_read.is_read:
                raise NotServed from None
            return without_marks(name, "unreadable", str(file_read.content), self.ready)

    def _asked(self, place: str, file: IO[bytes] | None = None, length: int = 0) -> bytes:
        """What is answered, to a request with this file of this length if there is one. Raises NotServed."""
        connection = _Connection(self._path, _MARKING_SECONDS if file else _ASKING_SECONDS)
        try:
            if file:
                connection.request("POST", place, file, {"Content-Length": str(length)})
            else:
                connection.request("GET", place)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            raise NotServed from None
        finally:
            connection.close()
        if answer.status != 200:
            raise NotServed
        return content

    def _decoded(self, content: bytes, form: type[T]) -> T:
        try:
            return msgspec.json.decode(content, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise NotServed from None


def served(device: Device, settings: Settings, private: Sequence[Path]) -> Served | None:
    """A `serve` of this course and account that marks as this process would; None if there is none.

    private: folders that no submission may read.
    """
    if not (there := sockets()) or any(map(exposed_in, private)):
        return None
    with suppress(NotIsolated):
        its_terms = on_device(terms(settings), device)
        for path in there:
            with suppress(NotServed):
                return Served(path, its_terms)
    return None


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Through the socket at the path."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_ASKING_SECONDS)
        with short(self._path.parent) as folder:
            self.sock.connect(f"{folder}/{self._path.name}")
        self.sock.settimeout(self.timeout)

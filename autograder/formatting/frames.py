"""The wire format of the formatter: a header of fixed size and a text. Its length is checked before it is read."""

import socket
import struct
from dataclasses import dataclass

from ..core.exact_reading import Closed, read

_HEAD = struct.Struct("<BII")


class Broken(Exception):
    """The other side closed the connection, or sent something that is not a frame."""


@dataclass(frozen=True)
class Frame:
    """A request: its kind and the CPU time that it may take; or an answer: its outcome and the CPU time it took."""

    code: int
    milliseconds: int
    text: str


def send(connection: socket.socket, frame: Frame) -> None:
    """Sends one frame; raises OSError if nobody takes it."""
    body = frame.text.encode("utf-8", "replace")
    connection.sendall(_HEAD.pack(frame.code, frame.milliseconds, len(body)) + body)


def receive(connection: socket.socket, most_bytes: int, deadline: float | None = None) -> Frame:
    """Receives one frame; raises Broken, OSError and TimeoutError.

    deadline: on time.monotonic's clock, for the whole frame.
    """
    try:
        code, milliseconds, size = _HEAD.unpack(read(connection, _HEAD.size, deadline))
        if size > most_bytes:
            raise Broken
        return Frame(code, milliseconds, read(connection, size, deadline).decode())
    except (Closed, UnicodeDecodeError):
        raise Broken from None

"""Reads so many bytes of a connection, and no more."""

import socket
import time


class Closed(Exception):
    """The other side closed the connection."""


def read(connection: socket.socket, size: int, deadline: float | None) -> bytes:
    """These bytes, all of them; raises Closed, OSError and TimeoutError.

    deadline: on time.monotonic's clock.
    """
    chunks = bytearray()
    while len(chunks) < size:
        if deadline is not None:
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
        chunk = connection.recv(min(size - len(chunks), 1 << 20))
        if not chunk:
            raise Closed
        chunks += chunk
    return bytes(chunks)

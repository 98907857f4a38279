"""Read a fixed number of bytes from a connection, for protocols whose messages begin with their length.

Imports no torch, because the process that formats texts uses this module.
"""

import socket
import time


class ConnectionClosed(Exception):
    """The other side closed the connection."""


def read_exactly(connection: socket.socket, size: int, deadline: float | None) -> bytes:
    """Return the next `size` bytes of a connection, and leave all later ones.

    deadline: the time at which to give up, on `time.monotonic`'s clock; None to wait without limit.
    Raises ConnectionClosed, OSError, and TimeoutError after the deadline.

    Example: `read_exactly(connection, 4, None)` returns the length of a message, and the next call returns its body.
    """
    chunks = bytearray()
    while len(chunks) < size:
        if deadline is not None:
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
        chunk = connection.recv(min(size - len(chunks), 1 << 20))
        if not chunk:
            raise ConnectionClosed
        chunks += chunk
    return bytes(chunks)

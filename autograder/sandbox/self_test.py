"""Tries at every start whether the confinement holds: a denial that does not come is a reason to mark nothing."""

import os
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import temporary
from .worker.attempts import Bait

Ask = Callable[[dict[str, Any]], dict[str, Any]]
"""Asks a confined worker, which has run no student's code, one thing."""

_SECRET = b"nothing that a submission may read"


class NotDenied(Exception):
    """The confinement does not hold; `str()` says what was possible."""


def run(ask: Ask) -> int:
    """Has a worker try what it must not be able to do, and looks at what became of it; the number of attempts.

    Raises NotDenied.
    """
    with (
        temporary.held("bait-") as folder,
        closing(socket.create_server(("127.0.0.1", 0))) as port,
        closing(socket.socket(socket.AF_UNIX)) as local,
    ):
        file = folder / "secret"
        file.write_bytes(_SECRET)
        before = _properties(file)
        local.bind(f"{folder}/socket")
        for listener in (port, local):
            listener.listen()
            listener.setblocking(False)
        bait = Bait(str(file), port.getsockname()[1], f"{folder}/socket", os.getpid())
        answer = ask({"operation": "attempts", "bait": asdict(bait)})
        possible = [str(name) for name in answer["succeeded"]]
        if not file.exists() or file.read_bytes() != _SECRET or _properties(file) != before:
            possible.append("a change of a file")
        if len(list(folder.iterdir())) != 2:
            possible.append("a new file")
        if any(map(_was_reached, (port, local))):
            possible.append("a connection")
    if possible:
        raise NotDenied(
            f"The sandbox does not hold here: {', '.join(possible)} was possible. Nothing is marked. "
            "docs/security.md says what each level needs; --require-isolation takes another."
        )
    return int(answer["tried"])


def _properties(file: Path) -> tuple[int, ...]:
    status = file.stat()
    return status.st_mode, status.st_size, status.st_mtime_ns


def _was_reached(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True

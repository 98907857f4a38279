"""HTTP server on one port of this machine, in a thread of its own, in which no client can delay another for long."""

import asyncio
import secrets
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets

from ..gradebook.nbgrader_course import CourseProblem
from .http_requests import MOST_DROPPED, Access, ConnectionLimiter, Intake, application

LOCALHOST = "127.0.0.1"
FOLDER = ".serving"
"""Folder in the course's folder while it is served by HTTP, for the token and for files that are still arriving."""
TOKEN_FILE = "token"
MOST_CONNECTIONS = 64
MOST_UNKNOWN = 256
"""Limit for connections without a token: more than come at once (the system's queue has 128), so all can show it."""
HEADER_SECONDS, BODY_SECONDS, _ALL_SECONDS = 10, 60, 300
_ENDING_SECONDS = 2


@contextmanager
def fresh_token(root: Path) -> Iterator[tuple[Path, str]]:
    """Make the folder for arriving files, with a new token that only this account can read. Raises CourseProblem."""
    folder, token = root / FOLDER, secrets.token_urlsafe(32)
    shutil.rmtree(folder, ignore_errors=True)  # of a killed run
    try:
        folder.mkdir(mode=0o700)
        (folder / TOKEN_FILE).touch(mode=0o600)
        (folder / TOKEN_FILE).write_text(f"{token}\n")
    except OSError as error:
        raise CourseProblem(
            f"{folder} cannot be made: {error.strerror}. Delete the file or folder of this name, and start again."
        ) from None
    try:
        yield folder, token
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class HttpServer(AbstractContextManager["HttpServer"]):
    """Server that opens its port at once, so that a taken port is reported, and answers requests from `start` on."""

    def __init__(self, port: int) -> None:
        """port: number of the port; 0 for a free one. Raises CourseProblem."""
        try:
            self._sockets = bind_sockets(port, LOCALHOST, socket.AF_INET)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise CourseProblem(
                f"Nothing can listen on port {port} of this machine: {why}. Name another, or 0 for a free one."
            ) from None
        self.port: int = self._sockets[0].getsockname()[1]
        hosts = frozenset(f"{name}:{self.port}" for name in (LOCALHOST, "localhost"))
        self._access = Access("", hosts, ConnectionLimiter(MOST_CONNECTIONS, MOST_UNKNOWN))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self, intake: Intake, token: str) -> None:
        """Answer requests from now on."""
        self._access.token = token
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(intake), self._loop).result()

    def refuse(self) -> None:
        """Refuse requests from now on, because serving ends; earlier requests are still answered."""
        self._access.is_ending = True

    async def _listen(self, intake: Intake) -> None:
        self._server = _Server(
            application(self._access, intake),
            no_keep_alive=True,
            idle_connection_timeout=HEADER_SECONDS,
            body_timeout=BODY_SECONDS,
            max_body_size=MOST_DROPPED,
        )
        self._server.limiter = self._access.limiter
        self._server.add_sockets(self._sockets)

    def __exit__(self, *error: object) -> None:
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        for opened in self._sockets:
            opened.close()
        self._loop.close()

    async def _end(self) -> None:
        """Accept no more requests, and finish sending the answers that exist by now."""
        self._server.stop()
        deadline = self._loop.time() + _ENDING_SECONDS
        while self._access.limiter and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class _Server(HTTPServer):
    """Server that limits the number and the duration of its connections."""

    limiter: ConnectionLimiter

    def handle_stream(self, stream: IOStream, address: tuple[object, ...]) -> None:
        self.limiter.add(stream)
        asyncio.get_running_loop().call_later(_ALL_SECONDS, stream.close)
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        assert isinstance(server_conn, HTTP1ServerConnection)
        self.limiter.remove(server_conn.stream)
        super().on_close(server_conn)

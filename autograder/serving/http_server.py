"""Listens for requests by HTTP: on a port for those who have the token, on a socket for this account alone.

A thread of its own, in which nothing waits for a slow client: there are few connections, and each has little time.
"""

import asyncio
import hashlib
import os
import socket
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import Application

from ..client import serving_socket
from ..gradebook.course_directory import CourseProblem
from .guests import Guests
from .http_answers import Door, Office
from .http_notebooks import MOST_DROPPED
from .http_requests import application
from .unit_served import KitChanged

LOCALHOST = "127.0.0.1"
_MOST_CONNECTIONS = 64
_MOST_UNKNOWN = 256
"""More than come at once (the system's queue has 128): each that says at once who it is has been heard by then."""
_HEADER_SECONDS, _BODY_SECONDS, _ALL_SECONDS = 10, 60, 300
_ENDING_SECONDS = 2
_KEPT = "AUTOGRADER_SERVE_SOCKET"
"""In the environment, from before to after starting anew: the number of the open socket."""


class HttpServer:
    """Opened at once, so that a port that is taken is known; requests are answered from `start` on."""

    def __init__(self, root: Path, port: int | None) -> None:
        """port: of this machine; 0 for a free one, None for none. Raises CourseProblem."""
        self._opened = ExitStack()
        self.port: int | None = None
        self._ports: list[socket.socket] = []
        if port is not None:
            try:
                self._ports = _kept_open(port) or bind_sockets(port, LOCALHOST, socket.AF_INET)
            except (OSError, OverflowError) as error:
                why = getattr(error, "strerror", None) or error
                raise CourseProblem(
                    f"Nothing can listen on port {port} of this machine: {why}. Name another, or 0 for a free one."
                ) from None
            self.port = self._ports[0].getsockname()[1]
        self._socket = _own_socket(root, self._opened)
        self._servers: list[_Server] = []
        self._guests: list[Guests] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self, office: Office, token: str) -> None:
        """Answers requests from here on. token: what a request on the port has to say."""
        self._thread.start()
        hosts = frozenset(f"{name}:{self.port}" for name in (LOCALHOST, "localhost"))
        if self._ports:
            guests = Guests(_MOST_CONNECTIONS, _MOST_UNKNOWN)
            self._guests.append(guests)
            self._listen(application(Door(office, guests, token, hosts)), guests, self._ports)
        if self._socket:
            guests = Guests(_MOST_CONNECTIONS, 0)
            self._guests.append(guests)
            self._listen(application(Door(office, guests)), guests, [self._socket])

    def refuse(self) -> None:
        """Answers from here on that serving ends; what was taken before is answered as ever."""
        for guests in self._guests:
            guests.is_ending = True

    def _listen(self, answering: Application, guests: Guests, sockets: list[socket.socket]) -> None:
        async def listen() -> None:
            server = _Server(
                answering,
                no_keep_alive=True,
                idle_connection_timeout=_HEADER_SECONDS,
                body_timeout=_BODY_SECONDS,
                max_body_size=MOST_DROPPED,
            )
            server.guests = guests
            server.add_sockets(sockets)
            self._servers.append(server)

        asyncio.run_coroutine_threadsafe(listen(), self._loop).result()

    def __enter__(self) -> "HttpServer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._opened.close()
        if isinstance(error, KitChanged) and self._ports:
            # For this process once it has started anew: nobody else gets the port meanwhile, nor what is sent to it.
            kept = self._ports[0].dup()
            kept.set_inheritable(True)
            os.environ[_KEPT] = str(kept.detach())
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        for one in [*self._ports, *([self._socket] if self._socket else [])]:
            one.close()
        self._loop.close()

    async def _end(self) -> None:
        """Takes no more requests; what is answered by now is sent to its end."""
        for server in self._servers:
            server.stop()
        deadline = self._loop.time() + _ENDING_SECONDS
        while any(server.connections for server in self._servers) and self._loop.time() < deadline:
            await asyncio.sleep(0.01)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def _kept_open(port: int) -> list[socket.socket]:
    """The socket that this process listened on before it started anew; none if it did not, or on another port."""
    try:
        kept = socket.socket(fileno=int(os.environ.pop(_KEPT)))
    except (KeyError, ValueError, OSError):
        return []
    kept.set_inheritable(False)
    kept.setblocking(False)
    if kept.family != socket.AF_INET or port not in (0, kept.getsockname()[1]):
        kept.close()
        return []
    return [kept]


class _Server(HTTPServer):
    """Has no connection for ever, and no more than its guests may be."""

    connections = 0
    guests: Guests

    def handle_stream(self, stream: IOStream, address: tuple[object, ...]) -> None:
        if not self.guests.come(stream):
            stream.close()
            return
        self.connections += 1
        asyncio.get_running_loop().call_later(_ALL_SECONDS, stream.close)
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        assert isinstance(server_conn, HTTP1ServerConnection)
        self.connections -= 1
        self.guests.go(server_conn.stream)
        super().on_close(server_conn)


def _own_socket(root: Path, opened: ExitStack) -> socket.socket | None:
    """A socket that only this account can reach, where `autograder mark` looks; None where there can be none.

    Its name is that of the class's folder, whose lock this process has: so another's is never taken away.
    """
    if os.environ.get(serving_socket.ALONE):
        return None
    folder = serving_socket.folder()
    name = f"{hashlib.sha256(str(root).encode()).hexdigest()[:16]}{serving_socket.ENDING}"
    made = socket.socket(socket.AF_UNIX)
    try:
        folder.parent.mkdir(exist_ok=True)
        (folder.parent / ".gitignore").write_text("*\n")
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            raise PermissionError
        folder.chmod(0o700)
        (folder / name).unlink(missing_ok=True)
        with serving_socket.short(folder) as short:
            made.bind(f"{short}/{name}")
        (folder / name).chmod(0o600)
        made.setblocking(False)
        made.listen()
    except OSError:
        made.close()
        return None
    opened.callback(_unlink, folder / name)
    return made


def _unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink()

"""HTTP requests on one port of this machine: submit a notebook for a student, or grade one and record nothing.

The server runs in a thread of its own, in which no client can delay another for long. docs/automation.md describes the
requests.
"""

import asyncio
import contextlib
import hmac
import re
import secrets
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from ..course import notebook
from ..course.notebook_file import MAX_FILE_BYTES, NotebookFile, read_at
from ..course.submitted_files import RULE
from ..gradebook.nbgrader_course import CourseProblem
from ..gradebook.roster import BadRoster
from ..report import Report
from ..reports.exports import json_line
from .arrivals import Arrival, ReceivedSubmission
from .work_queue import UnrecordedNotebook

_SCHEME = "Bearer"
_NO_REQUEST = "The server did not understand this request."
_ENDING = "This `autograder serve` is ending. Send this request again later: the same file is not submitted twice."
_NOTHING_HERE = "There is nothing here. The requests are POST /submissions/UNIT/STUDENT and POST /marks."
_LONGEST_WAIT = 120
"""Maximum number of seconds that a request may wait for its outcome."""
_PLACING_SECONDS = 60.0
_MOST_DIGITS = 20
_MOST_DROPPED = 1 << 20
"""Maximum number of bytes read from a refused request's body: a client that still sends may not see an answer."""
LOCALHOST = "127.0.0.1"
FOLDER = ".serving"
"""Folder in the course's folder while it is served by HTTP, for the token and for files that are still arriving."""
TOKEN_FILE = "token"
MOST_CONNECTIONS = 64
MOST_UNKNOWN = 256
"""Limit for connections without a token: more than come at once (the system's queue has 128), so all can show it."""
HEADER_SECONDS, BODY_SECONDS, _ALL_SECONDS = 10, 60, 300
_ENDING_SECONDS = 2


@dataclass(frozen=True)
class Intake:
    """Data and functions of the course with which requests are answered."""

    units: frozenset[str]
    is_student: Callable[[str], bool]
    """Returns whether the course can have a student with this id."""
    is_listed: Callable[[str], bool]
    """Returns whether this id is on the roster, or does not need to be. Raises BadRoster and CourseProblem."""
    most_bytes: int
    """Size limit of a submitted file."""
    folder: Path
    """Folder of requests' files until they are whole, on the disk of the course's folder."""
    submit: Callable[[Arrival], None]
    grade: Callable[[UnrecordedNotebook], None]


class ConnectionLimiter:
    """Limits for connections: those whose request has shown the token do not compete with those that have not."""

    def __init__(self, most: int, most_unknown: int) -> None:
        """most: limit for connections that have shown the token. most_unknown: limit for the others."""
        self._most = most
        self._most_unknown = most_unknown
        self._known: set[IOStream] = set()
        self._unknown: dict[IOStream, None] = {}

    def __len__(self) -> int:
        return len(self._known) + len(self._unknown)

    def add(self, stream: IOStream) -> None:
        """Add a new connection; of too many unknown ones, close the one that has waited longest."""
        while len(self._unknown) >= self._most_unknown:
            oldest = next(iter(self._unknown))
            del self._unknown[oldest]
            oldest.close()
        self._unknown[stream] = None

    def promote(self, stream: IOStream) -> bool:
        """Count a connection that has shown the token as known; return whether there is room for it."""
        if stream not in self._known and len(self._known) >= self._most:
            return False
        self._unknown.pop(stream, None)
        self._known.add(stream)
        return True

    def remove(self, stream: IOStream) -> None:
        """Remove a connection that is closed."""
        self._known.discard(stream)
        self._unknown.pop(stream, None)


@dataclass
class Access:
    """Conditions on which a request is answered."""

    token: str
    hosts: frozenset[str]
    """Host names that requests may use for this machine. A web page whose name leads here would use its own name."""
    limiter: ConnectionLimiter
    is_ending: bool = False
    """True once no more requests are accepted."""


class Refused(HTTPError):
    """Raised to refuse a request, with an HTTP status and a message."""

    def __init__(self, status: int, sentence: str) -> None:
        """sentence: error message to the client."""
        super().__init__(status)
        self.sentence = sentence


@stream_request_body
class _Handler(RequestHandler):
    """Checks a request, writes its body, which is a notebook, to a file as it comes, and answers with a JSON object."""

    most_bytes = MAX_FILE_BYTES
    """Size limit of the body."""
    _is_gone = False
    _file: FileIO | None = None
    _refused: Refused | None = None

    def initialize(self, access: Access, intake: Intake) -> None:
        self.access = access
        self.intake = intake

    def prepare(self) -> None:
        text = self.request.headers.get("Content-Length", "")
        length = int(text[:_MOST_DIGITS]) if text.isascii() and text.isdigit() else None
        is_post = self.request.method == "POST"
        try:
            self._check_access()
            self.check()
            if not is_post:
                raise Refused(405, "This request is a POST.")
            if length is None:
                raise Refused(411, "Give the notebook's length in the header Content-Length.")
            if length > self.most_bytes:
                raise Refused(
                    413,
                    f"The notebook is larger than {self.most_bytes / 1e6:g} MB. Clear the outputs and save the "
                    "notebook again.",
                )
        except Refused as refused:
            if not is_post or length is None or length > _MOST_DROPPED:
                raise
            self._refused = refused
            return
        self.request.connection.set_max_body_size(length)  # type: ignore[union-attr]
        self._path = self.intake.folder / f"{secrets.token_hex(16)}.ipynb"
        try:
            self._file = self._path.open("xb", buffering=0)
        except OSError as error:
            raise _unwritable(error) from None

    def _check_access(self) -> None:
        if self.request.host not in self.access.hosts:
            raise Refused(403, "Address this server as 127.0.0.1 or localhost, with the port.")
        scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
        is_right = hmac.compare_digest(token.strip().encode(), self.access.token.encode())
        if scheme != _SCHEME or not is_right:
            raise Refused(
                401,
                "Send the header `Authorization: Bearer TOKEN`, with the present content of the file .serving/token.",
            )
        if not self.access.limiter.promote(self.request.connection.stream):  # type: ignore[union-attr]
            raise Refused(503, "There are too many requests at once. Send this one again later.")
        if self.access.is_ending:
            raise Refused(503, _ENDING)

    def check(self) -> None:
        """Check the request before its body is read. Raises Refused."""
        raise Refused(404, _NOTHING_HERE)

    def data_received(self, chunk: bytes) -> None:
        if self._file is None or self._refused is not None:
            return
        try:
            left = memoryview(chunk)
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._refused = _unwritable(error)

    async def post(self) -> None:
        if self._refused is not None:
            raise self._refused
        assert self._file
        self._file.close()
        await self.take(await asyncio.get_running_loop().run_in_executor(None, read_at, self._path))

    async def take(self, file: NotebookFile) -> None:
        """Answer a request. file: its body, read like any submitted file. Raises Refused."""

    def answer(self, value: Any) -> None:
        """Answer with one JSON object on a line."""
        self.set_header("Content-Type", "application/json")
        self.finish(json_line(value))

    def set_default_headers(self) -> None:
        self.clear_header("Server")

    def write_error(self, status_code: int, **about: Any) -> None:
        reason = about["exc_info"][1] if "exc_info" in about else None
        if reason is None and status_code == 500:  # it was cut off: see `HttpServer._end`
            reason = Refused(503, _ENDING)
            self.set_status(503)
        if status_code == 401:
            self.set_header("WWW-Authenticate", _SCHEME)
        message = "Our fault; what was printed says more." if status_code == 500 else _NO_REQUEST
        self.answer({"error": reason.sentence if isinstance(reason, Refused) else message})

    def parameter(self, name: str, default: str) -> str:
        """Return a query parameter unchanged: tornado would change control characters."""
        return parse_qs(self.request.query, errors="replace").get(name, [default])[-1]

    def on_finish(self) -> None:
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)

    def on_connection_close(self) -> None:
        self._is_gone = True
        self.on_finish()

    def is_wanted(self) -> bool:
        """Return whether the client still waits."""
        return not self._is_gone


def _unwritable(error: OSError) -> Refused:
    return Refused(507, f"The notebook could not be written into the course's folder: {error}. Nothing was submitted.")


class _Mark(_Handler):
    """Grades a notebook and records nothing."""

    def check(self) -> None:
        pass

    async def take(self, file: NotebookFile) -> None:
        answers: asyncio.Queue[Report | str] = asyncio.Queue()
        name = self.parameter("name", "notebook.ipynb")
        self.intake.grade(UnrecordedNotebook(name, file, _threadsafe(answers.put_nowait), self.is_wanted))
        answer = await answers.get()
        if isinstance(answer, str):
            raise Refused(503, answer)
        self.answer(answer)


class _Submission(_Handler):
    """Submits a notebook for a student."""

    def check(self) -> None:
        self.most_bytes = self.intake.most_bytes
        try:
            unit, student = (unquote(part, errors="strict") for part in self.request.path.split("/")[-2:])
        except UnicodeDecodeError:
            raise Refused(400, _NO_REQUEST) from None
        if unit not in self.intake.units:
            served = ", ".join(sorted(self.intake.units))
            raise Refused(404, f"There is no unit {notebook.printable(unit)!r} here. Served: {served}.")
        name = notebook.printable(student)
        if not self.intake.is_student(student):
            raise Refused(400, f"{name!r} cannot be a student's id: an id has {RULE}.")
        try:
            is_listed = self.intake.is_listed(student)
        except (BadRoster, CourseProblem) as trouble:
            raise Refused(503, f"{trouble} Nothing was submitted.") from None
        if not is_listed:
            raise Refused(
                404, f"{name!r} is not on the roster. Put this id on it, or start `autograder serve` with --unlisted."
            )
        wait = self.parameter("wait", "10")
        if not (re.fullmatch(r"\d{1,3}", wait, re.ASCII) and int(wait) <= _LONGEST_WAIT):
            raise Refused(400, f"wait must be a number of seconds from 0 to {_LONGEST_WAIT}.")
        self._unit, self._student, self._wait = unit, student, int(wait)

    async def take(self, file: NotebookFile) -> None:
        answers: asyncio.Queue[ReceivedSubmission | OSError] = asyncio.Queue()
        parsed = await asyncio.get_running_loop().run_in_executor(None, notebook.parse, file.content)
        if isinstance(parsed, notebook.UnreadableNotebook):
            raise Refused(400, f"{parsed} Nothing was submitted.")
        about = ReceivedSubmission(self._unit, self._student, file.digest, now())
        self.intake.submit(Arrival(about, self._path, _threadsafe(answers.put_nowait), self.is_wanted))
        try:
            answer = await asyncio.wait_for(answers.get(), _PLACING_SECONDS)
        except TimeoutError:
            self._is_gone = True
            raise Refused(503, "The course's folder is busy. Nothing was submitted; submit again.") from None
        if isinstance(answer, OSError):
            raise _unwritable(answer)
        with contextlib.suppress(TimeoutError):
            answer = await asyncio.wait_for(answers.get(), self._wait)
        self.set_status(200 if isinstance(answer, ReceivedSubmission) and answer.status == "marked" else 202)
        self.answer(answer)


def _threadsafe(put: Callable[[Any], object]) -> Callable[[Any], None]:
    """Return a version of the function that other threads may call."""
    loop = asyncio.get_running_loop()

    def later(answer: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile, and nobody waits
            loop.call_soon_threadsafe(put, answer)

    return later


def now() -> datetime:
    """Return the time at which a request submits."""
    return datetime.now(UTC)


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
        arguments = {"access": self._access, "intake": intake}
        application = Application(
            [(r"/submissions/[^/]+/[^/]+", _Submission, arguments), (r"/marks", _Mark, arguments)],
            default_handler_class=_Handler,
            default_handler_args=arguments,
            log_function=lambda handler: None,
        )
        self._server = _Server(
            application,
            no_keep_alive=True,
            idle_connection_timeout=HEADER_SECONDS,
            body_timeout=BODY_SECONDS,
            max_body_size=_MOST_DROPPED,
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

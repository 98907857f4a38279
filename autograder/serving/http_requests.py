"""What can be asked by HTTP, and what is answered. See docs/automation.md."""

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from .. import notebook
from ..client.requests import Ready
from ..exports.json_line import json_line
from ..handed_in.notebook_file import MAX_FILE_BYTES, NotebookFile, read_at
from ..handed_in.student_id import RULE
from ..report import Report
from .arrivals import Arrival
from .guests import Guests
from .rules import HandedIn
from .todo import Asked

_WAIT_SECONDS, _LONGEST_WAIT = 10.0, 120.0
_PLACING_SECONDS = 60.0
_SCHEME = "Bearer"
_NO_REQUEST = "This is no request that could be understood."
_ENDING = "This `autograder serve` is ending. Send it again later: the same file is not handed in twice."
_MOST_DIGITS = 20
MOST_DROPPED = 1 << 20
"""Bytes of a body that are read of a request that is refused: who still sends may not see an answer."""


@dataclass(frozen=True)
class Office:
    """What requests are answered with."""

    units: frozenset[str]
    is_student: Callable[[str], bool]
    """Whether the course can have a student of this id."""
    most_bytes: int
    """Of a file that is handed in."""
    folder: Path
    """Where requests' files are until they are whole; on the disk of the course's folder."""
    hand_in: Callable[[Arrival], None]
    ask: Callable[[Asked], None]
    ready: Ready
    terms: frozenset[str]
    """On what notebooks are marked here: see `client.terms`."""


@dataclass(frozen=True)
class Door:
    """Where requests come in."""

    office: Office
    guests: Guests
    token: str | None = None
    """None where only this account gets in."""
    hosts: frozenset[str] = frozenset()
    """What a request may call this machine: a web page that has its own name lead here calls it by that."""


def application(door: Door) -> Application:
    """Answers requests at one door."""
    routes: list[Any] = [
        (r"/submissions/[^/]+/[^/]+", _Submission, {"door": door}),
        (r"/marks", _Mark, {"door": door}),
        *([] if door.token else [(r"/ready", _ReadyHere, {"door": door})]),
    ]
    return Application(
        routes, default_handler_class=_Unknown, default_handler_args={"door": door}, log_function=lambda handler: None
    )


class Refused(HTTPError):
    """A request that is not carried out; the sentence says why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status)
        self.sentence = sentence


class _Answering(RequestHandler):
    """Lets in who may, and says in a sentence what is wrong."""

    def initialize(self, door: Door) -> None:
        self._door = door

    def prepare(self) -> None:
        if self._door.token is None:
            self.refuse_at_the_end()
            return
        if self.request.host not in self._door.hosts:
            raise Refused(403, "This machine is called 127.0.0.1 or localhost here, with the port.")
        scheme, _, said = self.request.headers.get("Authorization", "").partition(" ")
        is_right = hmac.compare_digest(said.strip().encode(), self._door.token.encode())
        if scheme != _SCHEME or not is_right:
            raise Refused(
                401, "Send the header `Authorization: Bearer TOKEN`, with what the file .serving/token has now."
            )
        if not self._door.guests.is_known(self.request.connection.stream):  # type: ignore[union-attr]
            raise Refused(503, "There are too many requests at once. Send it again.")
        self.refuse_at_the_end()

    def refuse_at_the_end(self) -> None:
        """Raises Refused once what is taken would not be seen to any more."""
        if self._door.guests.is_ending:
            raise Refused(503, _ENDING)

    def answer(self, value: Any) -> None:
        """Answers with one JSON object on a line."""
        self.set_header("Content-Type", "application/json")
        self.finish(json_line(value))

    def set_default_headers(self) -> None:
        self.clear_header("Server")

    def write_error(self, status_code: int, **about: Any) -> None:
        reason = about["exc_info"][1] if "exc_info" in about else None
        if reason is None and status_code == 500:  # it was cut off: see `HttpServer._end`
            reason = Refused(503, _ENDING)
            self.set_status(503)
        said = {405: "This request is a POST.", 500: "Our fault; what was printed says more."}
        usual = said.get(status_code, _NO_REQUEST)
        if status_code == 401:
            self.set_header("WWW-Authenticate", _SCHEME)
        self.answer({"error": reason.sentence if isinstance(reason, Refused) else usual})

    def asked(self, name: str, default: str = "") -> str:
        """What the address says after its question mark, as it is: tornado would change control characters."""
        return parse_qs(self.request.query, errors="replace").get(name, [default])[-1]

    _is_gone = False

    def on_connection_close(self) -> None:
        self._is_gone = True

    def is_wanted(self) -> bool:
        """Whether the sender still waits."""
        return not self._is_gone


@stream_request_body  # of a body that nobody wants nothing is looked at
class _Unknown(_Answering):
    def data_received(self, chunk: bytes) -> None:
        """Drops it."""

    def prepare(self) -> None:
        super().prepare()
        raise Refused(404, "There is nothing here. The requests are POST /submissions/UNIT/STUDENT and POST /marks.")


class _ReadyHere(_Answering):
    """`autograder mark` asks whether it is marked here as it would mark itself."""

    def get(self) -> None:
        _refuse_other_terms(self)
        self.answer(self._door.office.ready)


def _refuse_other_terms(asking: _Answering) -> None:
    if asking.asked("terms") not in asking._door.office.terms:
        raise Refused(409, "Notebooks are marked on other terms here.")


@stream_request_body
class _WithNotebook(_Answering):
    """Has a notebook for its body, which is written to a file as it comes."""

    _file: FileIO | None = None
    _refused: Refused | None = None

    def prepare(self) -> None:
        if self.request.method != "POST":
            super().prepare()
            raise HTTPError(405)
        length = self._length()
        try:
            self.admit()
            if length is None:
                raise Refused(411, "Say by Content-Length how long the notebook is.")
            if length > (most := self.most_bytes()):
                raise Refused(
                    413, f"The notebook is larger than {most / 1e6:g} MB. Clear its outputs and save it again."
                )
        except Refused as refused:
            if length is None or length > MOST_DROPPED:
                raise
            self._refused = refused
            return
        self.request.connection.set_max_body_size(length)  # type: ignore[union-attr]
        self._path = self._door.office.folder / f"{secrets.token_hex(16)}.ipynb"
        try:
            self._file = self._path.open("xb", buffering=0)
        except OSError as error:
            raise _unwritable(error) from None

    def admit(self) -> None:
        """Raises Refused where nothing of the body is wanted."""
        super().prepare()

    def _length(self) -> int | None:
        said = self.request.headers.get("Content-Length", "")
        return int(said[:_MOST_DIGITS]) if said.isascii() and said.isdigit() else None

    def most_bytes(self) -> int:
        """How long the body may be."""
        return MAX_FILE_BYTES

    def data_received(self, chunk: bytes) -> None:
        if self._file is None or self._refused is not None:
            return
        try:
            left = memoryview(chunk)
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._refused = _unwritable(error)

    def on_finish(self) -> None:
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)

    def on_connection_close(self) -> None:
        super().on_connection_close()
        self.on_finish()

    async def file(self) -> NotebookFile:
        """What has come, read as any file that is handed in. Raises Refused."""
        if self._refused is not None:
            raise self._refused
        self.refuse_at_the_end()
        assert self._file
        self._file.close()
        return await asyncio.get_running_loop().run_in_executor(None, read_at, self._path)


def _unwritable(error: OSError) -> Refused:
    return Refused(507, f"It could not be written into the course's folder: {error}. Nothing was handed in.")


class _Mark(_WithNotebook):
    """Marks a notebook and records nothing."""

    def admit(self) -> None:
        super().admit()
        if self._door.token is None:
            _refuse_other_terms(self)

    async def post(self) -> None:
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[Report | str] = asyncio.Queue()
        name = self.asked("name", "notebook.ipynb")
        file = await self.file()
        self._door.office.ask(Asked(name, file, _threadsafe(loop, told.put_nowait), self.is_wanted))
        found = await told.get()
        if isinstance(found, str):
            raise Refused(503, found)
        self.answer(found)


class _Submission(_WithNotebook):
    """Hands in for a student."""

    def admit(self) -> None:
        super().admit()
        try:
            unit, student = (unquote(part, errors="strict") for part in self.request.path.split("/")[-2:])
        except UnicodeDecodeError:
            raise Refused(400, _NO_REQUEST) from None
        if unit not in self._door.office.units:
            served = ", ".join(sorted(self._door.office.units))
            raise Refused(404, f"There is no unit {notebook.printable(unit)!r} here. Served: {served}.")
        if not self._door.office.is_student(student):
            raise Refused(400, f"{notebook.printable(student)!r} cannot be a student's id: that has {RULE}.")
        self._unit, self._student = unit, student
        self._wait = self._seconds()

    def most_bytes(self) -> int:
        return self._door.office.most_bytes

    def _seconds(self) -> float:
        said = self.asked("wait")
        if not said:
            return _WAIT_SECONDS
        if not (said.isascii() and said.isdigit() and len(said) < 4 and int(said) <= _LONGEST_WAIT):
            raise Refused(400, f"wait is a number of seconds from 0 to {_LONGEST_WAIT:g}.")
        return float(said)

    async def post(self) -> None:
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[HandedIn | OSError] = asyncio.Queue()
        file = await self.file()
        found = await loop.run_in_executor(None, notebook.parse, file.content)
        if isinstance(found, notebook.Damaged):
            raise Refused(400, f"{found} Nothing was handed in.")
        about = HandedIn(self._unit, self._student, file.digest, _now())
        arrival = Arrival(about, self._path, _threadsafe(loop, told.put_nowait), self.is_wanted)
        self._door.office.hand_in(arrival)
        try:
            now = await asyncio.wait_for(told.get(), _PLACING_SECONDS)
        except TimeoutError:
            self._is_gone = True
            raise Refused(503, "The course's folder is busy. Nothing was handed in; hand in again.") from None
        if isinstance(now, OSError):
            raise _unwritable(now)
        with contextlib.suppress(TimeoutError):
            now = await asyncio.wait_for(told.get(), self._wait)
        self.set_status(200 if isinstance(now, HandedIn) and now.status == "marked" else 202)
        self.answer(now)


def _threadsafe(loop: asyncio.AbstractEventLoop, do: Callable[[Any], object]) -> Callable[[Any], None]:
    def later(found: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile, and nobody waits
            loop.call_soon_threadsafe(do, found)

    return later


def _now() -> datetime:
    return datetime.now(UTC)

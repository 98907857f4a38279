"""Requests that bring a notebook: to hand it in for a student, or to have it marked and nothing recorded."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from io import FileIO
from typing import Any
from urllib.parse import unquote

from tornado.web import HTTPError, stream_request_body

from ..course import notebook
from ..gradebook.course_directory import CourseProblem
from ..gradebook.roster import BadRoster
from ..report import Report
from ..submitted.notebook_file import MAX_FILE_BYTES, NotebookFile, read_at
from ..submitted.student_id import RULE
from .arrivals import Arrival
from .http_answers import NO_REQUEST, Answering, Refused
from .rules import HandedIn
from .todo import Asked

_WAIT_SECONDS, _LONGEST_WAIT = 10.0, 120.0
_PLACING_SECONDS = 60.0
_MOST_DIGITS = 20
MOST_DROPPED = 1 << 20
"""Bytes of a body that are read of a request that is refused: who still sends may not see an answer."""


@stream_request_body
class _WithNotebook(Answering):
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
        self._path = self.door.office.folder / f"{secrets.token_hex(16)}.ipynb"
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


class Mark(_WithNotebook):
    """Marks a notebook and records nothing."""

    def admit(self) -> None:
        super().admit()
        if self.door.token is None:
            self.refuse_other_terms()

    async def post(self) -> None:
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[Report | str] = asyncio.Queue()
        name = self.asked("name", "notebook.ipynb")
        file = await self.file()
        self.door.office.ask(Asked(name, file, _threadsafe(loop, told.put_nowait), self.is_wanted))
        found = await told.get()
        if isinstance(found, str):
            raise Refused(503, found)
        self.answer(found)


class Submission(_WithNotebook):
    """Hands in for a student."""

    def admit(self) -> None:
        super().admit()
        try:
            unit, student = (unquote(part, errors="strict") for part in self.request.path.split("/")[-2:])
        except UnicodeDecodeError:
            raise Refused(400, NO_REQUEST) from None
        if unit not in self.door.office.units:
            served = ", ".join(sorted(self.door.office.units))
            raise Refused(404, f"There is no unit {notebook.printable(unit)!r} here. Served: {served}.")
        if not self.door.office.is_student(student):
            raise Refused(400, f"{notebook.printable(student)!r} cannot be a student's id: that has {RULE}.")
        self._refuse_unlisted(student)
        self._unit, self._student = unit, student
        self._wait = self._seconds()

    def _refuse_unlisted(self, student: str) -> None:
        try:
            is_listed = self.door.office.is_listed(student)
        except (BadRoster, CourseProblem) as trouble:
            raise Refused(503, f"{trouble} Nothing was handed in.") from None
        if not is_listed:
            name = notebook.printable(student)
            raise Refused(
                404, f"{name!r} is not on the roster. Put this id on it, or start `autograder serve` with --unlisted."
            )

    def most_bytes(self) -> int:
        return self.door.office.most_bytes

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
        if isinstance(found, notebook.UnreadableNotebook):
            raise Refused(400, f"{found} Nothing was handed in.")
        about = HandedIn(self._unit, self._student, file.digest, _now())
        arrival = Arrival(about, self._path, _threadsafe(loop, told.put_nowait), self.is_wanted)
        self.door.office.hand_in(arrival)
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

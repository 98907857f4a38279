"""Who is let in, and how an answer or a refusal is said: what all requests by HTTP have in common."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tornado.web import HTTPError, RequestHandler

from ..client.requests import Ready
from ..reports.json_output import json_line
from .arrivals import Arrival
from .guests import Guests
from .todo import Asked

_SCHEME = "Bearer"
NO_REQUEST = "This is no request that could be understood."
_ENDING = "This `autograder serve` is ending. Send it again later: the same file is not handed in twice."


@dataclass(frozen=True)
class Office:
    """What requests are answered with."""

    units: frozenset[str]
    is_student: Callable[[str], bool]
    """Return whether the course can have a student with this id."""
    is_listed: Callable[[str], bool]
    """Return whether this id is on the roster, or does not need to be. Raises BadRoster and CourseProblem."""
    most_bytes: int
    """Size limit of a submitted file."""
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


class Refused(HTTPError):
    """A request that is not carried out; the sentence says why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status)
        self.sentence = sentence


class Answering(RequestHandler):
    """Lets in who may, and says in a sentence what is wrong."""

    def initialize(self, door: Door) -> None:
        self.door = door

    def prepare(self) -> None:
        if self.door.token is None:
            self.refuse_at_the_end()
            return
        if self.request.host not in self.door.hosts:
            raise Refused(403, "This machine is called 127.0.0.1 or localhost here, with the port.")
        scheme, _, said = self.request.headers.get("Authorization", "").partition(" ")
        is_right = hmac.compare_digest(said.strip().encode(), self.door.token.encode())
        if scheme != _SCHEME or not is_right:
            raise Refused(
                401, "Send the header `Authorization: Bearer TOKEN`, with what the file .serving/token has now."
            )
        if not self.door.guests.is_known(self.request.connection.stream):  # type: ignore[union-attr]
            raise Refused(503, "There are too many requests at once. Send it again.")
        self.refuse_at_the_end()

    def refuse_at_the_end(self) -> None:
        """Raises Refused once what is taken would not be seen to any more."""
        if self.door.guests.is_ending:
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
        usual = said.get(status_code, NO_REQUEST)
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

    def refuse_other_terms(self) -> None:
        """Raises Refused where `autograder mark` would mark otherwise than it is marked here."""
        if self.asked("terms") not in self.door.office.terms:
            raise Refused(409, "Notebooks are marked on other terms here.")

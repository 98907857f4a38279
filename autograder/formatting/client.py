"""Asks the formatter for HTML, one text at a time, and never waits longer than it was told to."""

import contextlib
import socket
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from ..sandbox import isolation, temporary
from ..sandbox.launch import ConfinedProcess
from . import formatter, frames
from .formatter import CODE, MARKDOWN
from .launch import launch
from .limits import PageLimits

Kind = Literal["markdown", "code"]
_CODES: dict[Kind, int] = {"markdown": MARKDOWN, "code": CODE}

Outcome = Literal["formatted", "too slow", "too large", "failed", "unavailable"]
_OUTCOMES: dict[int, Outcome] = {
    formatter.FORMATTED: "formatted",
    formatter.TOO_LARGE: "too large",
    formatter.FAILED: "failed",
}

_START_SECONDS = 60
_MOST_LOSSES = 3
_REST_SECONDS = 300
_CHILDS_CPU_SECONDS = 60
"""After which a child is replaced, so that nothing builds up in it that would count against a later text."""


@dataclass(frozen=True)
class Answer:
    """What became of a text; `html` only where it was formatted."""

    outcome: Outcome
    html: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


class _Lost(Exception):
    """The formatter's process is gone, or never started."""


class Formatter:
    """The formatter's process and the connection to its child; either is replaced when it is lost.

    If it is lost again and again, it is left alone for a while, and nothing is formatted.
    """

    def __init__(self, limits: PageLimits, require: str, *, trust_submissions: bool) -> None:
        """require, trust_submissions: as in autograder.toml. Starts nothing yet."""
        self.limits = limits
        self._require = require
        self._trusts = trust_submissions
        self._launched: ConfinedProcess | None = None
        self._is_ready = False
        self._child: socket.socket | None = None
        self._childs_cpu = 0.0
        self._losses = 0
        self._rests_until = 0.0
        self._one_at_a_time = threading.Lock()

    def start(self) -> None:
        """Starts the process, without waiting until it is ready; what goes wrong shows when a text is formatted."""
        with self._one_at_a_time, contextlib.suppress(_Lost):
            self._launch()

    def format(self, kind: Kind, text: str, *, cpu_seconds: float, wall_seconds: float) -> Answer:
        """The text as HTML, or why it could not be formatted."""
        with self._one_at_a_time:
            try:
                connection = self._connected()
            except _Lost:
                return Answer("unavailable")
            begun = time.monotonic()
            request = frames.Frame(_CODES[kind], max(round(cpu_seconds * 1000), 1), text)
            try:
                connection.settimeout(wall_seconds)
                frames.send(connection, request)
                answer = frames.receive(connection, formatter.MOST_HTML_BYTES, begun + wall_seconds)
                outcome, used, html = _OUTCOMES[answer.code], answer.milliseconds / 1000, answer.text
            except TimeoutError:
                self._drop_child()
                outcome, used, html = "too slow", cpu_seconds, ""
            except (frames.Broken, OSError, KeyError):
                # Mostly ended by its timer; anything else that ended it is as bad.
                self._drop_child()
                waited = time.monotonic() - begun
                outcome, used, html = ("too slow" if waited >= cpu_seconds else "failed"), min(waited, cpu_seconds), ""
            self._losses = 0
            self._childs_cpu += used
            return Answer(outcome, html, used, time.monotonic() - begun)

    def close(self) -> None:
        """Ends the process; formatting another text starts a new one."""
        with self._one_at_a_time:
            self._end()

    def _connected(self) -> socket.socket:
        if self._childs_cpu > _CHILDS_CPU_SECONDS:
            self._drop_child()
        if self._child is None:
            try:
                self._child = self._new_child()
            except _Lost:
                self._child = self._new_child()
            self._childs_cpu = 0.0
        return self._child

    def _new_child(self) -> socket.socket:
        """The connection to a new child; the one before is ended."""
        launched = self._ready()
        near_end, far_end = socket.socketpair()
        with far_end:
            try:
                launched.control.settimeout(_START_SECONDS)
                socket.send_fds(launched.control, [b"+"], [far_end.fileno()])
            except OSError:
                near_end.close()
                raise self._lose() from None
        return near_end

    def _ready(self) -> ConfinedProcess:
        launched = self._launch()
        if not self._is_ready:
            try:
                said = frames.receive(launched.control, 1 << 16, time.monotonic() + _START_SECONDS)
            except (frames.Broken, OSError):
                raise self._lose() from None
            temporary.remove(launched.folder)  # imported by now
            if said.code != formatter.READY:
                raise self._lose()
            self._is_ready = True
        return launched

    def _launch(self) -> ConfinedProcess:
        if self._launched is None:
            if time.monotonic() < self._rests_until:
                raise _Lost
            try:
                level = isolation.choose(self._require, trust_submissions=self._trusts)
                self._launched = launch(level, self.limits)
            except (isolation.NotIsolated, OSError):
                raise self._lose() from None
        return self._launched

    def _lose(self) -> _Lost:
        self._end()
        self._losses += 1
        if self._losses >= _MOST_LOSSES:
            self._losses = 0
            self._rests_until = time.monotonic() + _REST_SECONDS
        return _Lost()

    def _drop_child(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _end(self) -> None:
        self._drop_child()
        launched, self._launched, self._is_ready = self._launched, None, False
        if launched is not None:
            launched.end(1)

    def __enter__(self) -> "Formatter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

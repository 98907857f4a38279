"""The trusted side of formatting: the formatter's process, and the budget of time for each page.

`Formatter` starts the process, sends it one text at a time, and replaces it when it is lost. No call waits longer than
the caller allows. Once a page's budget is spent, `PageFormatter` shows further texts unformatted, below an explanation.
"""

import contextlib
import json
import socket
import threading
import time
from dataclasses import asdict

from ..sandbox import isolation
from ..sandbox.confine import scratch
from ..sandbox.confine.confinement import Level, Terms
from ..sandbox.confine.process import WorkerLimits
from ..sandbox.isolation import ConfinedProcess, copy_packages, start
from ..sandbox.limits import PageLimits
from .formatter import MOST_HTML_BYTES, Answer, Broken, Kind, Outcome, Request, receive, send
from .rendering import LONGEST_CELL, as_it_is, elements_of, is_short, with_reason

START_SECONDS = 60
_REST_SECONDS = 300
_LEAST_CPU_SECONDS = 0.001  # a timer of 0 seconds would never end
_CHILDS_CPU_SECONDS = 60
"""After this CPU time a child is replaced, so that nothing accumulates in it that would count against a later text."""
_MOST_CHILDS_CPU_SECONDS = 600
_MEGABYTE = 1 << 20


class _Lost(Exception):
    """The formatter's process is gone, or never started."""


class Formatter(contextlib.AbstractContextManager["Formatter"]):
    """The formatter's process and the connection to its child.

    Either is replaced when it is lost. If none can be started, nothing is formatted for some minutes.
    """

    def __init__(self, limits: PageLimits, require: str, *, trust_submissions: bool) -> None:
        """Start nothing yet. require, trust_submissions: as in autograder.toml."""
        self.limits = limits
        self._require = require
        self._trusts = trust_submissions
        self._process: ConfinedProcess | None = None
        self._is_ready = False
        self._child: socket.socket | None = None
        self._childs_cpu = 0.0
        self._rests_until = 0.0
        self._one_at_a_time = threading.Lock()

    def start(self) -> None:
        """Start the process, without waiting until it is ready. `format` reports what goes wrong."""
        with self._one_at_a_time, contextlib.suppress(_Lost):
            self._launched()

    def format(self, kind: Kind, text: str, *, cpu_seconds: float, wall_seconds: float) -> Answer:
        """Return the text's HTML, or why it could not be formatted."""
        with self._one_at_a_time:
            try:
                connection = self._connected()
            except _Lost:
                return Answer("unavailable")
            begun = time.monotonic()
            request = Request(kind, text.encode("utf-8", "replace").decode(), max(cpu_seconds, _LEAST_CPU_SECONDS))
            try:
                connection.settimeout(wall_seconds)
                send(connection, request)
                answer = receive(connection, Answer, begun + wall_seconds)
                if len(answer.html) > MOST_HTML_BYTES:
                    raise Broken
            except TimeoutError:
                self.drop_child()
                answer = Answer("too slow", cpu_seconds=cpu_seconds)
            except (Broken, OSError):
                # Its timer has ended it, in most cases; anything else that ends it is as bad.
                self.drop_child()
                waited = time.monotonic() - begun
                answer = Answer("too slow" if waited >= cpu_seconds else "failed", cpu_seconds=cpu_seconds)
            answer.wall_seconds = time.monotonic() - begun
            answer.cpu_seconds = min(max(answer.cpu_seconds, 0.0), answer.wall_seconds)
            self._childs_cpu += answer.cpu_seconds
            return answer

    def close(self) -> None:
        """End the process. Formatting another text starts a new one."""
        with self._one_at_a_time:
            self._end()

    def _connected(self) -> socket.socket:
        if self._childs_cpu > _CHILDS_CPU_SECONDS:
            self.drop_child()
        for _ in range(2):  # the process may have been killed while it was idle
            if self._child is None and time.monotonic() >= self._rests_until:
                with contextlib.suppress(_Lost):
                    self._child, self._childs_cpu = self._new_child(), 0.0
        if self._child is None:
            if time.monotonic() >= self._rests_until:
                self._rests_until = time.monotonic() + _REST_SECONDS
            raise _Lost
        return self._child

    def _new_child(self) -> socket.socket:
        """Return the connection to a new child; the previous child is ended."""
        process = self._launched()
        near_end, far_end = socket.socketpair()
        with far_end:
            try:
                if not self._is_ready:
                    receive(process.control, Answer, time.monotonic() + START_SECONDS)
                    scratch.remove_temporary(process.folder)  # the code is imported by now
                    self._is_ready = True
                process.control.settimeout(START_SECONDS)
                socket.send_fds(process.control, [b"+"], [far_end.fileno()])
            except (Broken, OSError):
                near_end.close()
                self._end()
                raise _Lost from None
        return near_end

    def _launched(self) -> ConfinedProcess:
        if self._process is None:
            try:
                level = isolation.choose(self._require, trust_submissions=self._trusts)
                self._process = launch(level, self.limits)
            except (isolation.NotIsolated, OSError):
                raise _Lost from None
        return self._process

    def drop_child(self) -> None:
        """End the child; the next text gets a new one."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _end(self) -> None:
        self.drop_child()
        process, self._process, self._is_ready = self._process, None, False
        if process is not None:
            process.end(1)

    def __exit__(self, *error: object) -> None:
        self.close()


def launch(level: Level, limits: PageLimits) -> ConfinedProcess:
    """Start Python on a copy of the code that formats and the code that confines; raises OSError.

    The caller deletes the copy once the process is ready.
    """
    folder = scratch.make_temporary("autograder-")
    copy_packages(("formatting", "core", "sandbox/confine"), folder / "autograder")
    terms = Terms(level, isolation.readable(), devices=isolation.devices(cuda=False))
    worker = WorkerLimits(_MOST_CHILDS_CPU_SECONDS, limits.memory_megabytes * _MEGABYTE, 0, 32, 1)
    code = f"""
import json, sys
sys.path[:0] = [{str(folder)!r}]
sys.path += {isolation.packages()!r}
from autograder.formatting.formatter import main
from autograder.sandbox.confine.confinement import Terms
from autograder.sandbox.confine.process import WorkerLimits
sys.path.remove({str(folder)!r})
terms, limits = json.loads({json.dumps([asdict(terms), asdict(worker)])!r})
main(int(sys.argv.pop()), Terms(**terms), WorkerLimits(**limits))
"""
    return start(code, folder, level, {"HOME": "/"}, scratch_bytes=_MEGABYTE, own_session=True)


FORMATTED_ON_A_PAGE = 200_000
"""Maximum number of characters that are formatted on a page, including the released cells'."""
_MOST_HTML = 2_000_000
"""Maximum number of characters of HTML from a page's texts: nbconvert parses the whole page again."""
_MOST_ELEMENTS = 20_000
"""Maximum number of elements in a page's HTML: a browser, and nbconvert's parser, take a second for this number."""
_MOST_CACHED = 2000
"""Maximum number of cells whose HTML is cached, the released ones of a unit first."""
_LONGEST_CACHED = 30_000

_REASONS: dict[Outcome, str] = {
    "too slow": "This cell took too long to format, so it is shown as plain text.",
    "too large": "Formatted, this cell would be too long for the page, so it is shown as plain text.",
    "failed": "This cell could not be formatted, so it is shown as plain text.",
    "unavailable": "Formatting does not work here at the moment, so this cell is shown as plain text.",
}
_LONG = "This cell, or a line of it, is too long to format, so it is shown as plain text."
_SPENT = "This page took too long to format, so this cell is shown as plain text."
_FULL = "This page has too much text to format all of it, so this cell is shown as plain text."


class PageFormatter:
    """Formats the texts of one page after another. Its methods replace nbconvert's filters for students' texts."""

    def __init__(self, formatter: Formatter) -> None:
        self._formatter = formatter
        self._cache: dict[tuple[Kind, str], str] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a new page, with its whole budget."""
        limits = self._formatter.limits
        self._characters = FORMATTED_ON_A_PAGE
        self._html = _MOST_HTML
        self._elements = _MOST_ELEMENTS
        self._cpu_seconds = float(limits.page_cpu_seconds)
        self._wall_seconds = float(limits.page_wall_seconds)

    def markdown(self, source: str) -> str:
        """Return the HTML of a markdown cell or an instructor's comment."""
        html, reason = self._html_of("markdown", source) if len(source) <= LONGEST_CELL else ("", _LONG)
        return with_reason(reason, source) + elements_of(source) if reason else html

    def code(self, source: str) -> str:
        """Return the HTML of a code cell, as Python, regardless of the language that it claims."""
        html, reason = self._html_of("code", source) if is_short(source) else ("", _LONG)
        return with_reason(reason, source) if reason else html

    def raw(self, source: str) -> str:
        """Return the HTML of a raw cell: its text without formatting."""
        return as_it_is(source)

    def _html_of(self, kind: Kind, source: str) -> tuple[str, str]:
        """Return a text's HTML and an empty reason, or nothing and the reason why it is not formatted."""
        self._characters -= len(source)
        if self._characters < 0 or self._html < 0 or self._elements < 0:
            return "", _FULL
        html = self._cache.get((kind, source))
        if html is None:
            if self._cpu_seconds <= 0 or self._wall_seconds <= 0:
                return "", _SPENT
            limit = self._formatter.limits.cell_cpu_seconds
            answer = self._formatter.format(
                kind, source, cpu_seconds=min(limit, self._cpu_seconds), wall_seconds=self._wall_seconds
            )
            self._cpu_seconds -= answer.cpu_seconds
            self._wall_seconds -= answer.wall_seconds
            if answer.outcome != "formatted":
                return "", _REASONS[answer.outcome]
            html = answer.html
            if len(html) <= _LONGEST_CACHED and len(self._cache) < _MOST_CACHED:
                self._cache[kind, source] = html
        self._html -= len(html)
        self._elements -= html.count("<")  # counts each element twice, if it is closed
        return (html, "") if self._html >= 0 and self._elements >= 0 else ("", _FULL)

"""The process that formats students' texts: it imports the libraries once, then forks a child that is confined.

The child formats one text after another. A text that takes too long ends the child, and another one is forked. The
trusted side, `client`, imports from here how requests and answers are sent.
"""

import contextlib
import gc
import importlib.util
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeVar

import msgspec

from ..core.connection import ConnectionClosed, read_exactly
from ..sandbox.confine.confinement import CannotConfine, Confinement, Terms, prepare
from ..sandbox.confine.process import WorkerLimits

Kind = Literal["markdown", "code"]
Outcome = Literal["formatted", "too slow", "too large", "failed", "unavailable"]
Formats = dict[Kind, Callable[[str], str]]
T = TypeVar("T")

MOST_HTML_BYTES = 1 << 20
_MOST_MESSAGE_BYTES = 8 << 20
"""Maximum size of a message: JSON takes up to six bytes for one byte of a text."""


class Request(msgspec.Struct):
    """A text to format, and the CPU time for it."""

    kind: Kind
    text: str
    cpu_seconds: float


class Answer(msgspec.Struct):
    """Result of formatting a text, and its cost; `html` is empty unless the text was formatted."""

    outcome: Outcome
    html: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0


class Broken(Exception):
    """The other side closed the connection, or sent something that is not a message."""


def send(connection: socket.socket, message: msgspec.Struct) -> None:
    """Send a message as JSON after its length, which has four bytes; raises OSError if the connection is lost."""
    body = msgspec.json.encode(message)
    connection.sendall(len(body).to_bytes(4) + body)


def receive(connection: socket.socket, form: type[T], deadline: float | None = None) -> T:
    """Receive a message; raises Broken, OSError and TimeoutError.

    deadline: on time.monotonic's clock, for the whole message.
    """
    try:
        size = int.from_bytes(read_exactly(connection, 4, deadline))
        if size > _MOST_MESSAGE_BYTES:
            raise Broken
        return msgspec.json.decode(read_exactly(connection, size, deadline), type=form)
    except (ConnectionClosed, msgspec.MsgspecError, UnicodeDecodeError):
        raise Broken from None


def main(control_fd: int, terms: Terms, limits: WorkerLimits) -> None:
    """Serve the control connection until the other side closes it: each byte brings a connection for a new child.

    An empty answer says that the process is ready; it ends without one if it cannot be confined.
    """
    control = socket.socket(fileno=control_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other side, which then closes the connection
    formats = _formats()
    with contextlib.suppress(CannotConfine, BrokenPipeError, ConnectionResetError):
        confinement = prepare(terms)
        gc.collect()
        gc.freeze()
        send(control, Answer("formatted"))
        _serve(control, formats, confinement, limits)


def _serve(control: socket.socket, formats: Formats, confinement: Confinement, limits: WorkerLimits) -> None:
    child = 0
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        if not message:
            return
        (connection,) = descriptors
        child = os.fork()
        if child:
            os.close(connection)
            continue
        try:
            control.close()
            confinement.enforce(limits, None)
            _format(socket.socket(fileno=connection), formats)
        finally:
            os._exit(0)


def _format(connection: socket.socket, formats: Formats) -> None:
    """Format texts until the connection closes. SIGPROF, which nothing catches, ends a process that takes too long."""
    while True:
        request = receive(connection, Request)
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, request.cpu_seconds)
        try:
            html = formats[request.kind](request.text).encode("utf-8", "replace")
            is_small = len(html) <= MOST_HTML_BYTES
            answer = Answer("formatted", html.decode()) if is_small else Answer("too large")
        except MemoryError:
            return  # without an answer, so that the next text gets a child with all of its memory
        except Exception:  # any error of a library, on a text that nobody foresaw
            answer = Answer("failed")
        signal.setitimer(signal.ITIMER_PROF, 0)
        answer.cpu_seconds = time.process_time() - begun
        send(connection, answer)


def _formats() -> Formats:
    """Return the functions that format, each used once: the child might not find what a library imports late."""
    _empty_nbconvert()
    from . import rendering

    formats: Formats = {"markdown": rendering.markdown2html, "code": rendering.highlight_code}
    formats["markdown"]("# a\n\n- *b* `c` $\\frac{1}{2}$ [d](e) &amp;\n\n```python\nf(1)\n```\n\n| a |\n|---|\n| b |")
    formats["code"]("%time f(1)  # 'a'")
    # The decoder and encoder of messages are made at their first use, too.
    msgspec.json.decode(msgspec.json.encode(Request("code", "", 0.0)), type=Request)
    return formats


def _empty_nbconvert() -> None:
    """Empty nbconvert's packages, which spend three seconds importing exporters and a JSON schema's parsers."""
    found = importlib.util.find_spec("nbconvert")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent
    for name in ("nbconvert", "nbconvert.filters", "nbconvert.preprocessors", "nbconvert.utils"):
        package = ModuleType(name)
        package.__path__ = [str(folder.parent.joinpath(*name.split(".")))]
        sys.modules[name] = package

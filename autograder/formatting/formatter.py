"""The process that formats students' texts: it imports the libraries once, then forks a child that is confined.

The child formats one text after another. A text that takes it too long ends it, and another child is forked.
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

from ..sandbox.confine.confinement import CannotConfine, Confinement, Terms, prepare
from ..sandbox.confine.resources import WorkerLimits
from . import frames
from .frames import Frame

MARKDOWN, CODE = range(2)
"""The kind of a text: the code of a request."""
FORMATTED, TOO_LARGE, FAILED = range(3)
"""What became of the text: the code of an answer."""
READY, CANNOT = range(2)

MOST_TEXT_BYTES = 1 << 20
MOST_HTML_BYTES = 1 << 20

Formats = dict[int, Callable[[str], str]]


def main(control_fd: int, terms: Terms, limits: WorkerLimits) -> None:
    """Serves the control connection until the other side closes it: each byte brings a connection for a new child."""
    control = socket.socket(fileno=control_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other side, which then closes the connection
    formats = _formats()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        try:
            confinement = prepare(terms)
        except CannotConfine as reason:
            frames.send(control, Frame(CANNOT, 0, str(reason)))
            return
        gc.collect()
        gc.freeze()
        frames.send(control, Frame(READY, 0, ""))
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
    """Formats texts until the connection closes. SIGPROF, which nothing here catches, ends what takes too long."""
    while True:
        request = frames.receive(connection, MOST_TEXT_BYTES)
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, request.milliseconds / 1000)
        outcome, html = FORMATTED, ""
        try:
            html = formats[request.code](request.text)
            if len(html.encode("utf-8", "replace")) > MOST_HTML_BYTES:
                outcome, html = TOO_LARGE, ""
        except MemoryError:
            return  # without an answer, so that the next text gets a child with all of its memory
        except Exception:  # whatever a library raises on a text that nobody foresaw
            outcome, html = FAILED, ""
        signal.setitimer(signal.ITIMER_PROF, 0)
        used = round((time.process_time() - begun) * 1000)
        frames.send(connection, Frame(outcome, used, html))


def _formats() -> Formats:
    """The functions that format, each used once already: the child might not find what a library imports late."""
    _without_what_is_not_used()
    from . import pages

    formats: Formats = {
        MARKDOWN: pages.markdown2html,
        CODE: pages.highlight_code,
    }
    formats[MARKDOWN]("# a\n\n- *b* `c` $\\frac{1}{2}$ [d](e) &amp;\n\n```python\nf(1)\n```\n\n| a |\n|---|\n| b |")
    formats[CODE]("%time f(1)  # 'a'")
    return formats


def _without_what_is_not_used() -> None:
    """Empties nbconvert's packages, which spend three seconds importing exporters and a JSON schema's parsers."""
    found = importlib.util.find_spec("nbconvert")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent
    for name in ("nbconvert", "nbconvert.filters", "nbconvert.preprocessors", "nbconvert.utils"):
        package = ModuleType(name)
        package.__path__ = [str(folder.parent.joinpath(*name.split(".")))]
        sys.modules[name] = package

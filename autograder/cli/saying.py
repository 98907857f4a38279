"""How the commands speak: results on stdout, everything else on stderr, and a sentence where something is wrong.

Names and messages may come from a student: what a terminal would take for a command, or rich for markup, is shown as
text and not obeyed.
"""

import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ..course import notebook
from ..course.folder import NoCourse
from ..errors import UserError


class _Console(Console):
    """Prints nothing that a terminal obeys, but for rich's own styles, wherever in a text or a table it is."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Replace control characters in all text that is printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=notebook.printable_lines(segment.text))

    def on_broken_pipe(self) -> None:
        """Leaves it to `results`: rich would end the program without a word."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


console = _Console()
aside = _Console(stderr=True)

OUR_FAULT, REFUSED, TOO_LOW = 1, 2, 3
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

_MOST_NAMED = 20


def shown(text: object) -> Text:
    """Anyone's text, line by line, made safe for a terminal."""
    return Text(notebook.printable_lines(str(text)))


def some(names: Sequence[str]) -> str:
    """The names in a sentence: the first twenty, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def short(path: Path) -> str:
    """Return a path, relative to the working directory if it lies in there; that folder itself has its whole path."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) and path != here else str(path)


def refuse(sentence: object) -> NoReturn:
    """Says why nothing was done, and exits with code 2."""
    remark(sentence, style="red")
    raise typer.Exit(REFUSED)


def remark(sentence: object, *, style: str | None = None) -> None:
    """Says something on stderr, if anyone is there to read it."""
    with contextlib.suppress(OSError):
        aside.print(shown(sentence), style=style or "", highlight=False, soft_wrap=True)


class OutputLost(UserError):
    """The results cannot be written; `str()` says why."""


@contextlib.contextmanager
def results() -> Iterator[None]:
    """Around code that writes results: when it ends they are all written, or OutputLost is raised."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        _forget(sys.stdout.fileno())
        raise OutputLost(f"The results could not be written to the end: {error.strerror}.") from None


_begun: list[bool] = []


@contextlib.contextmanager
def of_typer() -> Iterator[None]:
    """Around typer: help and the like that cannot be written end in a sentence too."""
    try:
        yield
    except OSError as error:
        if _begun:  # then it is a command's, and a fault of ours
            raise
        _forget(sys.stdout.fileno())
        remark(f"The text could not be written to the end: {error.strerror}.", style="red")
        sys.exit(REFUSED)


@contextlib.contextmanager
def ending_in_a_sentence() -> Iterator[None]:
    """Around a whole command: a signal that ends it raises KeyboardInterrupt once, and no traceback is shown."""
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    sys.unraisablehook = _send_again
    _begun.append(True)
    try:
        yield
    except KeyboardInterrupt:
        refuse("Interrupted.")
    except (NoCourse, OutputLost) as reason:
        refuse(reason)


def flush() -> None:
    """Writes what is still buffered, or discards it: otherwise Python would complain about it in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _forget(stream.fileno())


_interrupted: list[int] = []


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt for the first signal; ending takes a moment, which another one must not cut short."""
    if not _interrupted:
        _interrupted.append(number)
        raise KeyboardInterrupt


def _send_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Send a signal again that arrived in a destructor: Python drops the exception that its handler raised there."""
    if _interrupted and dropped.exc_type is KeyboardInterrupt:
        again = threading.Timer(0.05, os.kill, (os.getpid(), _interrupted.pop()))  # when the destructor has ended
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(dropped)


def _forget(descriptor: int) -> None:
    """Sends whatever is still to be written there to /dev/null."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)

"""The paths that options and arguments name, and results that go to a file or to standard output."""

import sys
from collections.abc import Collection
from pathlib import Path

import typer

from .. import output_files
from ..course.notebook import printable_lines
from .saying import results

STANDARD_OUTPUT = Path("-")


def named(text: str) -> Path:
    """Read a path from the command line. `-` is standard output, and `./-` a file of that name."""
    if not text.strip():
        raise typer.BadParameter("The name is empty.")
    path = Path(text)
    return path.absolute() if path == STANDARD_OUTPUT and text != str(STANDARD_OUTPUT) else path


def refuse_standard_output(path: Path | None, instead: str) -> None:
    """Raise NotWritable if `-` is given for a result that is not printed."""
    if path == STANDARD_OUTPUT:
        raise output_files.NotWritable(f"This result cannot be printed to standard output. {instead}")


def check(path: Path, inputs: Collection[Path] = (), *, makes_folder: bool = False) -> None:
    """Raise NotWritable if a result cannot be written there, as `output_files`; standard output always takes it."""
    if path != STANDARD_OUTPUT:
        output_files.check(path, inputs, makes_folder=makes_folder)


def write(path: Path, content: bytes, *, makes_folder: bool = False) -> None:
    """Write a result. Raise NotWritable, and OutputLost if standard output does not take it."""
    if path != STANDARD_OUTPUT:
        output_files.write({path: content}, makes_folder=makes_folder)
        return
    with results():
        sys.stdout.buffer.write(for_terminal(content) if sys.stdout.isatty() else content)


def for_terminal(content: bytes) -> bytes:
    """Replace what a terminal obeys instead of showing it: escapes, other controls, changes of direction."""
    return printable_lines(content.decode(errors="replace")).encode()

"""What a student's code raises, as data: its type, its words, and the line of the cell that it came from."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from .faults import Place, Raised

CELL_PREFIX = "cell:"
"""Opens the file name of a cell's code in the worker."""
_IN_A_KERNEL = re.compile(r"ipykernel_|^<ipython-input")


def is_cell(file: str) -> bool:
    """Return whether a file name is that of a cell's code, in the worker or in a Jupyter kernel."""
    return file.startswith(CELL_PREFIX) or bool(_IN_A_KERNEL.search(file))


@contextmanager
def student_code() -> Iterator[None]:
    """Turns whatever the student's code raises into Raised, with the line of the cell it came from."""
    try:
        yield
    except BaseException as error:
        raise raised(error) from None


def raised(error: BaseException) -> Raised:
    """An exception of the student's as data."""
    try:
        message = str(error.msg) if isinstance(error, SyntaxError) else str(error)
    except Exception:
        message = ""
    if type(error) is NotImplementedError and not message:
        message = _other_than_the_stub(error)
    kinds = [kind.__name__ for kind in type(error).__mro__][:10]
    return Raised(type(error).__name__, message, _place_of(error), kinds)


def _other_than_the_stub(error: BaseException) -> str:
    """Which of the student's own functions raised it, where that is not the exercise's stub."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    codes = [code for code in codes if code.co_filename.startswith(CELL_PREFIX)]
    if not codes:
        return ""
    cell, named = codes[-1].co_filename.removeprefix(CELL_PREFIX), codes[-1].co_qualname
    is_asked_for = len(codes) == 1 and cell.startswith("number ")  # a cell that has lost its name
    is_stub = is_asked_for or named.partition(".")[0] in (cell, "<module>")
    return "" if is_stub else f"`{named}` raises it itself"


def _place_of(error: BaseException) -> Place | None:
    if isinstance(error, SyntaxError):
        cell = error.filename or ""
        return Place(cell.removeprefix(CELL_PREFIX), error.lineno or 1) if cell.startswith(CELL_PREFIX) else None
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_code.co_filename.startswith(CELL_PREFIX):
            return Place(frame.f_code.co_filename.removeprefix(CELL_PREFIX), line)
    return None

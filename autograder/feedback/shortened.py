"""A notebook cut to what is run or read: from 16 MB of line ends nbformat would write ten times as much.

Scores, verdicts and comments are never cut.
"""

from typing import Any

from ..notebook import MAX_CHARACTERS
from .notebook import NOTE

LONGEST_CELL = 50_000
LONGEST_PAGE = 300_000
"""Characters in a page's cells, and as many again in what they printed."""
LONGEST_NOTEBOOK = 2_000_000
"""Characters in the cells of a notebook as nbgrader keeps it."""
_NAMED, _CODE, _REST = range(3)
_CUT = "[The rest of this cell is left out here: {} characters.]"
_PRINTED = "[The rest of what was printed is left out here: {} characters.]"


def bound(cells: list[Any]) -> None:
    """Cuts the cells of a notebook that is to be kept, in place.

    What is kept is what is marked: code, and cells with names, are cut only beyond the length that is ever run.
    """
    left = LONGEST_NOTEBOOK
    marked = [cell for cell in cells if _rank(cell) <= _CODE]
    for cell in marked:
        left -= _cut(cell, MAX_CHARACTERS)
    for cell in cells:
        if _rank(cell) > _CODE:
            left -= _cut(cell, min(LONGEST_CELL, max(left, 0)))


def shorten(notebook: Any) -> None:
    """Cuts the texts of a notebook's cells and what they printed, in place, before a page is made of it.

    What a mark is about takes precedence.
    """
    left, printed = LONGEST_PAGE, LONGEST_PAGE
    for cell in sorted(notebook.cells, key=_rank):
        left -= _cut(cell, min(LONGEST_CELL, left))
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                output.text, printed = _short(output.text, printed)
            elif output.output_type == "error":
                text, printed = _short("\n".join(output.traceback), printed)
                output.traceback = text.split("\n")


def _rank(cell: Any) -> int:
    """Which cells get their share of a length first: the kit's note and cells with names, then code, then the rest."""
    if cell.get("id") == NOTE or "nbgrader" in cell.metadata:
        return _NAMED
    return _CODE if cell.cell_type == "code" else _REST


def _cut(cell: Any, longest: int) -> int:
    """Cuts a cell's text to a length; returns how much of it is kept."""
    kept = min(len(cell.source), longest)
    if kept < len(cell.source):
        cut = _CUT.format(len(cell.source) - kept)
        cell.source = f"{cell.source[:kept]}\n\n{cut}"  # code that is cut stays too long to be run
    return kept


def _short(text: str, most: int) -> tuple[str, int]:
    kept = min(len(text), LONGEST_CELL, most)
    return (text if kept == len(text) else f"{text[:kept]}\n{_PRINTED.format(len(text) - kept)}"), most - kept

"""Truncation of a notebook's texts to what is run or read: nbformat writes 16 MB of line ends as ten times as much.

Scores, verdicts and comments are never truncated.
"""

from typing import Any

from .notebook import MAX_CHARACTERS

NOTE = "autograder-note"
"""The id of the autograder's own cell at the top of a graded notebook; no student's cell has this id."""
LONGEST_CELL = 50_000
LONGEST_PAGE = 300_000
"""Characters in a page's cells, and as many again in what they printed."""
LONGEST_NOTEBOOK = 2_000_000
"""Characters in the cells of a notebook as nbgrader stores it."""
_NAMED, _CODE, _REST = range(3)
_CUT = "[The rest of this cell is left out here: {} characters.]"
_PRINTED = "[The rest of what was printed is left out here: {} characters.]"


def truncate_for_storage(cells: list[Any]) -> None:
    """Truncate in place the cells of a notebook that nbgrader stores.

    Code and cells with names are graded, so they are truncated only beyond the length that is ever run.
    """
    left = LONGEST_NOTEBOOK
    for cell in sorted(cells, key=_rank):
        left -= _truncate(cell, MAX_CHARACTERS if _rank(cell) <= _CODE else min(LONGEST_CELL, max(left, 0)))


def truncate_for_page(notebook: Any) -> None:
    """Truncate in place a notebook's cells and what they printed, before a page is made of it.

    Cells that a score is about take precedence.
    """
    left, printed = LONGEST_PAGE, LONGEST_PAGE
    for cell in sorted(notebook.cells, key=_rank):
        left -= _truncate(cell, min(LONGEST_CELL, left))
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                output.text, printed = _truncate_output(output.text, printed)
            elif output.output_type == "error":
                text, printed = _truncate_output("\n".join(output.traceback), printed)
                output.traceback = text.split("\n")


def _rank(cell: Any) -> int:
    """Rank cells by precedence: the autograder's note and cells with names, then code, then the rest."""
    if cell.get("id") == NOTE or "nbgrader" in cell.metadata:
        return _NAMED
    return _CODE if cell.cell_type == "code" else _REST


def _truncate(cell: Any, longest: int) -> int:
    """Truncate a cell's text; return how many of its characters remain."""
    length = min(len(cell.source), longest)
    if length < len(cell.source):
        cut = _CUT.format(len(cell.source) - length)
        cell.source = f"{cell.source[:length]}\n\n{cut}"  # code that is truncated stays too long to be run
    return length


def _truncate_output(text: str, left: int) -> tuple[str, int]:
    length = min(len(text), LONGEST_CELL, left)
    cut = "" if length == len(text) else f"\n{_PRINTED.format(len(text) - length)}"
    return text[:length] + cut, left - length

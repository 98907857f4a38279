"""Create, copy, write and truncate nbformat's notebooks, cells and outputs.

These functions save time: nbformat's own `new_*` functions validate each cell against the schema of a whole notebook,
which takes a quarter of the time of recording a grade. `copy.deepcopy` takes twice as long as `copied`, and `json` four
times as long as `as_file`.

Texts are truncated to the length that is executed or displayed, because nbformat writes 16 MB of line ends as 160 MB.
Scores, verdicts and comments are never truncated.
"""

from typing import Any, Literal

import msgspec
import nbformat
from nbformat import NotebookNode
from nbformat.v4.rwbase import split_lines, strip_transient

from .notebook import MAX_CHARACTERS

OutputType = Literal["stream", "display_data", "execute_result", "error"]
NOTE = "autograder-note"
"""The id of the cell that the autograder puts at the top of a graded notebook; no student's cell has this id."""
LONGEST_CELL = 50_000
LONGEST_PAGE = 300_000
"""Most characters in all cells of a feedback page; the same limit holds for the cells' printed outputs together."""
LONGEST_NOTEBOOK = 2_000_000
"""Most characters in all cells of a notebook that nbgrader stores."""
_NAMED, _CODE, _REST = range(3)
_CUT = "[The rest of this cell is left out here: {} characters.]"
_PRINTED = "[The rest of what was printed is left out here: {} characters.]"


def new_cell(kind: str, identifier: str, source: str) -> Any:
    """Return a new cell without metadata or outputs.

    kind: `code`, `markdown` or `raw`. identifier: its id. source: its text.
    """
    cell = NotebookNode(cell_type=kind, id=identifier, metadata=NotebookNode(), source=source)
    if kind == "code":
        cell.update(execution_count=None, outputs=[])
    return cell


def new_output(kind: OutputType, **fields: Any) -> Any:
    """Return a new output of a cell. fields: its fields; those that nbformat requires next to `data` are added."""
    output = NotebookNode(output_type=kind, **fields)
    if "data" in fields:
        output.update(data=NotebookNode(fields["data"]), metadata=NotebookNode())
    if kind == "execute_result":
        output.execution_count = None
    return output


def copied(notebook: Any) -> Any:
    """Return a deep copy of a notebook."""
    return nbformat.from_dict(msgspec.json.decode(msgspec.json.encode(notebook)))


def as_file(notebook: Any) -> bytes:
    """Return the content of a notebook's file: the text that `nbformat.v4.writes` returns, and a line end."""
    lines = split_lines(strip_transient(copied(notebook)))
    return msgspec.json.format(msgspec.json.encode(lines, order="sorted"), indent=1) + b"\n"


def truncate_for_storage(cells: list[Any]) -> None:
    """Truncate, in place, the texts of a notebook's cells before nbgrader stores them.

    Code cells and cells with a grade_id are graded, so they are truncated only if they are too long to be executed.
    """
    left = LONGEST_NOTEBOOK
    for cell in sorted(cells, key=_rank):
        left -= _truncate(cell, MAX_CHARACTERS if _rank(cell) <= _CODE else min(LONGEST_CELL, max(left, 0)))


def truncate_for_page(notebook: Any) -> None:
    """Truncate, in place, a notebook's cells and their printed outputs before a feedback page is made of it.

    If the page would still be too long, graded cells get the available space first, then other code cells.
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
    """Return a cell's rank for keeping its text: lowest for graded cells and the autograder's note, then other code."""
    if cell.get("id") == NOTE or "nbgrader" in cell.metadata:
        return _NAMED
    return _CODE if cell.cell_type == "code" else _REST


def _truncate(cell: Any, longest: int) -> int:
    """Truncate a cell's text in place to `longest` characters; return the number of characters that remain."""
    length = min(len(cell.source), longest)
    if length < len(cell.source):
        cut = _CUT.format(len(cell.source) - length)
        cell.source = f"{cell.source[:length]}\n\n{cut}"  # code that is truncated stays too long to be run
    return length


def _truncate_output(text: str, left: int) -> tuple[str, int]:
    length = min(len(text), LONGEST_CELL, left)
    cut = "" if length == len(text) else f"\n{_PRINTED.format(len(text) - length)}"
    return text[:length] + cut, left - length

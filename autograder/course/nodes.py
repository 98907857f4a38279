"""A notebook, its cells and outputs, as nbformat has them.

nbformat's own `new_*` functions check each one against the whole schema of a notebook, which takes a quarter of the
time of recording a mark; a deep copy, and a file with `json`, take twice and four times as long as here.
"""

from typing import Any, Literal

import msgspec
import nbformat
from nbformat import NotebookNode
from nbformat.v4.rwbase import split_lines, strip_transient

OutputType = Literal["stream", "display_data", "execute_result", "error"]


def new_cell(kind: str, identifier: str, source: str) -> Any:
    """A cell of a kind (code, markdown or raw) without metadata or outputs."""
    cell = NotebookNode(cell_type=kind, id=identifier, metadata=NotebookNode(), source=source)
    if kind == "code":
        cell.update(execution_count=None, outputs=[])
    return cell


def new_output(kind: OutputType, **fields: Any) -> Any:
    """An output of a kind with the given fields; with `data`, the other fields of its kind are filled in."""
    output = NotebookNode(output_type=kind, **fields)
    if "data" in fields:
        output.update(data=NotebookNode(fields["data"]), metadata=NotebookNode())
    if kind == "execute_result":
        output.execution_count = None
    return output


def copied(notebook: Any) -> Any:
    """A deep copy."""
    return nbformat.from_dict(msgspec.json.decode(msgspec.json.encode(notebook)))


def as_file(notebook: Any) -> bytes:
    """What `nbformat.v4.writes` makes of it, and a line end."""
    lines = split_lines(strip_transient(copied(notebook)))
    return msgspec.json.format(msgspec.json.encode(lines, order="sorted"), indent=1) + b"\n"

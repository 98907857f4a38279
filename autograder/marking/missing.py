"""Why a name that an exercise asks for is not defined, or not written, as far as the notebook's text shows."""

import re
from collections.abc import Sequence

from ..core.faults import Missing
from ..course import Unit
from ..course.cells import is_training, likenesses
from ..notebook import MAX_CHARACTERS, CodeCell, RawNotebook
from ..report import NOT_WRITTEN
from ..sandbox.worker.cell_source import WRITING, unsupported_magic

_DELETED = "Was its cell deleted or the name changed?"
_TEXT = "Its cell is text, which is not run: turn it into a code cell."
_TRAINING = "It is in a cell that grading does not run."
_NO_EFFECT = (
    "Its cell has a definition of it that took no effect. Is it in a string, in another function or in a "
    "branch that did not run?"
)
_RAISES = re.compile(
    re.escape(NOT_WRITTEN) + r" `(?P<cell>[^`]+)` yet: its line (?P<line>\d+) raises NotImplementedError\."
)
"""The message of `Raised` on an exception that a stub raises: it knows the place, and not what else is written."""


def about_stubs(message: str, cells: Sequence[CodeCell]) -> str:
    """The message, where it says of a cell that nothing is written: true of those with an untouched stub only."""
    if NOT_WRITTEN not in message:
        return message
    stubs = {cell.name for cell in cells if cell.is_stub}

    def said(found: re.Match[str]) -> str:
        if found["cell"] in stubs:
            return f"{NOT_WRITTEN} `{found['cell']}` yet."
        return (
            f"`raise NotImplementedError()` is in line {found['line']} of the cell `{found['cell']}` and ends the "
            "call there: write what is missing, and delete that line."
        )

    return _RAISES.sub(said, message)


def why_missing(exercise: str, notebook: RawNotebook, unit: Unit, cells: Sequence[CodeCell]) -> str:
    """The message to the student. cells: those that were run."""
    own = [cell for cell in cells if cell.exercise == exercise or cell.defines(exercise)]
    reason = _of_cell(own[-1], exercise) if own else _elsewhere(exercise, notebook, unit)
    return f"{Missing(exercise)} {reason}"


def _of_cell(cell: CodeCell, exercise: str) -> str:
    magic = unsupported_magic(cell.source)
    if magic == WRITING:
        return f"`%%{magic}` writes the cell `{cell.name}` into a file and does not run it: delete that line."
    if magic:
        return f"`%%{magic}`, which grading does not run, kept the cell `{cell.name}` from running: delete that line."
    if not cell.source.strip():
        return f"Its cell `{cell.name}` is empty."
    if cell.has_definition(exercise):
        return _NO_EFFECT
    return f"Its cell `{cell.name}` does not define it: was the name changed?"


def _elsewhere(exercise: str, notebook: RawNotebook, unit: Unit) -> str:
    """A reason outside of the cells that were run."""
    definition = re.compile(rf"^[ \t]*(?:async def|def|class)[ \t]+{re.escape(exercise)}\b", re.M)
    for cell, likeness in zip(notebook.cells, likenesses(notebook, unit), strict=True):
        has_it = cell.grade_id == exercise or definition.search(cell.text[:MAX_CHARACTERS])
        if has_it and cell.cell_type != "code":
            return _TEXT
        if has_it and is_training(cell, likeness, unit):
            return _TRAINING
    return _DELETED

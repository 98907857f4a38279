"""The notebook that nbgrader gets to see: the student's cells, in the released notebook's terms.

nbgrader trusts a submission's metadata: a duplicated grade_id, changed points or an unknown kernel stop it or change
a score. So of a student's notebook only the cells' texts are taken; everything that nbgrader reads is the release's.
"""

from copy import deepcopy
from functools import cache
from typing import Any

import nbformat

from .. import course
from ..notebook import Damaged, RawCell, RawNotebook
from ..notebook_nodes import new_cell

PUT_BACK = "# This cell was missing from the notebook that was handed in, and has been put back.\n"


DAMAGED = "damaged"


def released(unit: str) -> Any:
    """A copy of the notebook as it was released; FileNotFoundError where it was not."""
    return deepcopy(_released(unit))


@cache
def _released(unit: str) -> Any:
    return nbformat.read(course.RELEASE / unit / f"{unit}.ipynb", as_version=4)


def stand_in(unit: str, reason: Damaged) -> Any:
    """What stands in the place of a damaged notebook: the released one, with the reason in its metadata."""
    notebook = released(unit)
    notebook.metadata["autograder"] = {DAMAGED: str(reason)}
    return notebook


def damage(node: Any) -> str | None:
    """Why the file that this notebook stands in for could not be read; None for a notebook of the student's own."""
    found = node.metadata.get("autograder", {}).get(DAMAGED)
    return found if isinstance(found, str) else None


def clean(submission: RawNotebook, unit: str) -> Any:
    """A valid notebook with the student's cells in their order.

    Of a cell that stands twice the last copy is the one with the name; both run. Cells that nbgrader needs for a
    score and that were deleted are put back at the end, where they change no other cell's number.
    """
    notebook = released(unit)
    named = {cell.metadata["nbgrader"]["grade_id"]: cell for cell in notebook.cells if "nbgrader" in cell.metadata}
    last = {cell.grade_id: number for number, cell in enumerate(submission.cells) if cell.grade_id in named}
    cells = []
    for number, raw in enumerate(submission.cells):
        original = named[raw.grade_id] if last.get(raw.grade_id) == number else None
        cells.append(_cell(raw, number, original))
    for grade_id, original in named.items():
        if grade_id not in last and original.metadata["nbgrader"]["grade"]:
            if original.cell_type == "code":
                original.source = PUT_BACK + original.source
            cells.append(original)
    notebook.cells = cells
    return notebook


def _cell(raw: RawCell, number: int, original: Any) -> Any:
    if original is None:
        kind = raw.cell_type if raw.cell_type in ("code", "markdown") else "raw"
        return new_cell(kind, f"cell-{number + 1}", raw.text)
    cell = new_cell(original.cell_type, original.id, raw.text)
    cell.metadata = original.metadata
    return cell

"""Puts a report into the notebook it is about."""

from typing import Any

from .. import course
from ..course.cells import ADDED
from ..notebook import cell_name
from ..notebook.nodes import new_cell, new_output
from ..report import CellReport, Report
from . import grade_cell
from .markdown_text import as_markdown

ADDED_TO = "added_to"
"""In the metadata of a cell with lines that a student added to a locked cell: the name of that cell."""
NOTE = "autograder-note"
"""The id of the cell with the kit's note at the top of a marked notebook; no student's cell has this id."""


def write(notebook: Any, report: Report) -> None:
    """Fills the outputs of the notebook's cells; scores go into the grade cells and nowhere else."""
    exercises = {course.CHECK_PREFIX + exercise.name: exercise for exercise in report.exercises}
    ran = {cell.cell: cell for cell in report.cells}
    number = 0
    for cell in notebook.cells:
        added_to = cell.metadata.get("autograder", {}).get(ADDED_TO)
        number += added_to is None
        if cell.cell_type != "code":
            continue
        name = cell_name(number, cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        if added_to is not None:
            name = added_to + ADDED
        if name in exercises:
            cell.outputs = grade_cell.outputs(exercises[name])
        elif cell.metadata.get("nbgrader", {}).get("grade"):
            cell.outputs = [new_output("execute_result", data={"text/plain": "0.0"})]
        else:
            cell.outputs = _outputs(ran[name]) if name in ran else []
    if report.message:
        note = f"> **{_TITLES[report.status]}** {as_markdown(report.message)}"
        notebook.cells.insert(0, new_cell("markdown", NOTE, note))


_TITLES = {
    "graded": "Marked.",
    "cells_failed": "Some cells failed.",
    "timed_out": "Something in this notebook did not come back in time.",
    "crashed": "Something in this notebook ended Python.",
    "damaged": "This file could not be marked.",
    "grader_error": "This could not be graded to its end.",
}


def _outputs(cell: CellReport) -> list[Any]:
    outputs = [new_output("stream", name="stdout", text=cell.printed)] if cell.printed else []
    if cell.message:
        outputs.append(new_output("error", ename=cell.status, evalue=cell.message, traceback=[cell.message]))
    return outputs

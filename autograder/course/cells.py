"""The cells of a notebook that was handed in, as the unit it belongs to has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..notebook import CodeCell, Damaged, RawCell, RawNotebook, cell_name
from . import Unit, released, unit, unit_names
from .words_in_code import is_prose

CARRIED = "carried_check"
"""The grade_id of the cell with which a notebook in a single file carries the check. No unit has a cell of this name,
and marking runs none: both forms of a notebook give the same marks."""


def unit_of(notebook: RawNotebook, class_folder: Path | None = None) -> Unit | Damaged:
    """The unit that a notebook belongs to, by its cells rather than the file's name."""
    ids = {cell.grade_id for cell in notebook.cells}
    code = [CodeCell("", cell.text, None) for cell in notebook.cells if cell.cell_type == "code"]
    found = [
        (
            sum(exercise.name in ids for exercise in one.exercises),
            sum(cell.defines(exercise.name) for exercise in one.exercises for cell in code),
            one.name,
        )
        for one in (unit(name, class_folder) for name in unit_names(class_folder))
    ]
    *hits, name = max(found, default=(0, 0, ""))
    if not any(hits):
        return Damaged("No exercise of this course is in the notebook. Hand in the notebook that was released.")
    return unit(name, class_folder)


@dataclass(frozen=True)
class Likeness:
    """The released cell that a cell of a submission corresponds to."""

    name: str
    """Its grade_id; empty if there is none."""
    is_copy: bool
    """Whether a later cell corresponds to the same one, and so has the name."""


def likenesses(notebook: RawNotebook, unit: Unit) -> list[Likeness]:
    """For each cell the released cell with its grade_id, if that is of the same type."""
    names = [
        name if unit.cell_types.get(name := cell.grade_id) == cell.cell_type else ""  #
        for cell in notebook.cells
    ]
    last = {name: number for number, name in enumerate(names)}
    return [Likeness(name, bool(name) and last[name] != number) for number, name in enumerate(names)]


def is_training(cell: RawCell, likeness: Likeness, unit: Unit) -> bool:
    """Whether a cell trains something, and so is left out of marking: as its metadata say, or its id, or its text.

    Programs that open notebooks may drop some of these. A cell that has a name in the unit is none, whatever it says.
    """
    if cell.cell_type != "code" or likeness.name:
        return False
    return cell.says_training or cell.cell_id in unit.training_cells or cell.text in unit.training_cells.values()


def is_words(cell: RawCell, unit: Unit) -> bool:
    """Return whether a code cell is a text cell of the unit, turned into code, with words in it that are no Python."""
    return cell.cell_type == "code" and unit.cell_types.get(cell.grade_id) == "markdown" and is_prose(cell.text)


def code_cells(notebook: RawNotebook, unit: Unit) -> list[CodeCell]:
    """The cells to run, in the student's order.

    Checks and training cells are left out, and so is a check that the notebook carries. For the instructor's own cells
    the source's text runs, whatever is in the notebook; a deleted one runs first. If a cell is there twice both run, so
    the later of two definitions counts, and only the later cell has the name.
    """
    exercises = {exercise.name for exercise in unit.exercises}
    checks = {exercise.check for exercise in unit.exercises}
    ours = frozenset(unit.instructor_cells.values())
    cells: list[CodeCell] = []
    for number, (cell, likeness) in enumerate(zip(notebook.cells, likenesses(notebook, unit), strict=True), start=1):
        if cell.cell_type != "code" or likeness.name in checks or cell.grade_id == CARRIED:
            continue
        if is_training(cell, likeness, unit) or is_words(cell, unit):
            continue
        source = unit.instructor_cells.get(likeness.name, cell.text)
        name = "" if likeness.is_copy else likeness.name
        exercise = name if name in exercises else None
        cells.append(
            CodeCell(cell_name(number, name), source, exercise, source in unit.showing_cells, source in ours)  #
        )
    present = {cell.name for cell in cells}
    deleted = [
        CodeCell(grade_id, source, None, is_ours=True)
        for grade_id, source in unit.instructor_cells.items()
        if grade_id not in present
    ]
    return deleted + cells


def filled_in(unit: str, answers: Mapping[str, str], class_folder: Path | None = None) -> bytes:
    """A released notebook with answers typed into its solution cells, as a student would save it."""
    notebook = msgspec.json.decode(released(unit, class_folder).read_bytes())
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") in answers:
            cell["source"] = answers[cell["metadata"]["nbgrader"]["grade_id"]]
    return msgspec.json.format(msgspec.json.encode(notebook), indent=1) + b"\n"

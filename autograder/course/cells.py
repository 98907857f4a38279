"""The cells of a notebook that was handed in, as the unit it belongs to has them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path

import msgspec

from ..notebook import MAX_CELLS, CodeCell, Damaged, RawCell, RawNotebook, cell_name
from . import Unit, released, unit, unit_names
from .additions import Edit, edit_of
from .stubs import is_stub
from .words_in_code import is_prose

CARRIED = "carried_check"
"""The grade_id of the cell with which a notebook in a single file carries the check. No unit has a cell of this name,
and marking runs none: both forms of a notebook give the same marks."""

ADDED = " (added lines)"
"""Ends the name of a cell with the lines that a student added to a locked cell."""
_MOST_EDITED = 50
_NUMBERED = re.compile(r"number \d{1,4}")


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


def edits(notebook: RawNotebook, unit: Unit, found: Sequence[Likeness]) -> dict[int, Edit]:
    """Return the edits of locked code cells, by position counted from 0. Cells without edits are left out.

    found: the likenesses of all cells.

    Of more than `_MOST_EDITED` cells the rest counts as changed, and so does what would make the notebook too long.
    """
    room = min(_MOST_EDITED, MAX_CELLS - len(notebook.cells))
    edited: dict[int, Edit] = {}
    for position, (cell, likeness) in enumerate(zip(notebook.cells, found, strict=True)):
        released = unit.instructor_cells.get(likeness.name, unit.check_cells.get(likeness.name))
        if released is None or cell.text == released:
            continue
        edit = edit_of(released, cell.text) if len(edited) < room else Edit(has_changes=True)
        if edit != Edit():
            edited[position] = edit
    return edited


def is_addition(cell: RawCell, likeness: Likeness, unit: Unit) -> bool:
    """Return whether the metadata mark a cell as holding only lines that a student added to a locked cell."""
    if cell.cell_type != "code" or likeness.name:
        return False
    of = cell.says_added_to
    return of in unit.instructor_cells or of in unit.check_cells or bool(_NUMBERED.fullmatch(of))


def is_words(cell: RawCell, unit: Unit) -> bool:
    """Return whether a code cell is a text cell of the unit, turned into code, with words in it that are no Python."""
    return cell.cell_type == "code" and unit.cell_types.get(cell.grade_id) == "markdown" and is_prose(cell.text)


def code_cells(notebook: RawNotebook, unit: Unit) -> list[CodeCell]:
    """The cells to run, in the student's order.

    Checks and training cells are left out, and so is a check that the notebook carries. For the instructor's own cells
    the source's text runs, whatever is in the notebook; a deleted one runs first. Lines that a student added to a
    locked cell run after it. If a cell is there twice both run, and only the later cell has the name.
    """
    exercises = {exercise.name for exercise in unit.exercises}
    checks = {exercise.check: exercise.name for exercise in unit.exercises}
    checked: list[str] = []
    of_instructor = frozenset(unit.instructor_cells.values())
    found = likenesses(notebook, unit)
    edited = edits(notebook, unit, found)
    cells: list[CodeCell] = []

    def add(
        name: str, source: str, exercise: str | None = None, added_to: str = "", *, was_changed: bool = False
    ) -> None:
        only_shows, is_ours = source in unit.showing_cells, source in of_instructor and not added_to
        untouched = exercise is not None and is_stub(source, unit.frames.get(exercise, ()))
        cells.append(
            CodeCell(name, source, exercise, only_shows, is_ours, tuple(checked), added_to, untouched, was_changed)
        )
        checked.clear()

    number = 0
    for position, (cell, likeness) in enumerate(zip(notebook.cells, found, strict=True)):
        if is_addition(cell, likeness, unit):
            add(cell.says_added_to + ADDED, cell.text, added_to=cell.says_added_to)
            continue
        number += 1
        if cell.cell_type != "code" or cell.grade_id == CARRIED or is_training(cell, likeness, unit):
            continue
        if is_words(cell, unit):
            continue
        edit = edited.get(position, Edit())
        name = cell_name(number, "" if likeness.is_copy else likeness.name)
        is_check = likeness.name in checks
        if not is_check:
            exercise = name if name in exercises else None
            ours = unit.instructor_cells.get(likeness.name)
            was_changed = edit.has_changes or (ours is not None and cell.says_changed)
            add(name, cell.text if ours is None else ours, exercise, was_changed=was_changed)
        if edit.added:
            add(name + ADDED, edit.added, added_to=name)
        if is_check and not likeness.is_copy:
            checked.append(checks[likeness.name])
    present = {cell.name for cell in cells}
    deleted = [
        CodeCell(grade_id, source, None, is_ours=True)
        for grade_id, source in unit.instructor_cells.items()
        if grade_id not in present
    ]
    return deleted + list(map(_overruled, cells, repeat(cells)))


def _overruled(cell: CodeCell, cells: Sequence[CodeCell]) -> CodeCell:
    """The cell; if it is an untouched stub and another one has an answer, an empty one that is no exercise's."""
    if not cell.is_stub or not any(other.has_definition(str(cell.exercise)) for other in cells if other is not cell):
        return cell
    return replace(cell, source="", exercise=None, is_stub=False)


def filled_in(unit: str, answers: Mapping[str, str], class_folder: Path | None = None) -> bytes:
    """A released notebook with answers typed into its solution cells, as a student would save it."""
    notebook = msgspec.json.decode(released(unit, class_folder).read_bytes())
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") in answers:
            cell["source"] = answers[cell["metadata"]["nbgrader"]["grade_id"]]
    return msgspec.json.format(msgspec.json.encode(notebook), indent=1) + b"\n"

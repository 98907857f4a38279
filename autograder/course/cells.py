"""Match the cells of a submitted notebook with those of its unit, and select the cells to execute."""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from .locked_cells import Edit, edit_of
from .notebook import MAX_CELLS, CodeCell, RawCell, RawNotebook, UnreadableNotebook, cell_name, definitions
from .units import Unit, is_stub, released, released_cells, unit, unit_names

CARRIED = "carried_check"
"""The grade_id of the cell that contains the student check, in a notebook that is released as a single file.

No unit has a cell of this name, and grading does not execute it, so both forms of a notebook get the same grade.
"""
ADDED = " (added lines)"
"""Suffix of a cell's name, for the cell made of the lines that a student added to a locked cell."""
_MOST_EDITED = 50
_NUMBERED = re.compile(r"number \d{1,4}")
_LONGEST_PARSED = 20_000
"""Most characters of a code cell that is parsed to distinguish prose from code."""
# No \s: it matches line ends too, and searching a cell of empty lines would take hours.
_MARKDOWN_MAGIC = re.compile(r"[ \t]*%%(?:markdown|html|latex)\b[^\n]*\n")
_OF_IPYTHON = re.compile(r"^[ \t]*(?:[!%?].*|[\w.]+\?+[ \t]*)$", re.M)
_UNFINISHED = re.compile(r"^[ \t]*(?:(?:def|class) \w+[ \t]*[(:]|import \w|from \w+ import |for \w+ in |@\w)", re.M)
"""Lines that mark a cell which cannot be parsed as code rather than prose."""


@dataclass(frozen=True)
class Likeness:
    """The released cell to which a cell of a submission corresponds."""

    name: str
    """The released cell's grade_id; empty if the submission's cell corresponds to none."""
    is_copy: bool = False
    """True if a later cell of the submission corresponds to the same released cell, and so gets its name."""


def unit_of(notebook: RawNotebook, class_folder: Path | None = None) -> Unit | UnreadableNotebook:
    """Return the unit whose exercises a notebook contains, regardless of the file's name."""
    ids = {cell.grade_id for cell in notebook.cells}
    code = [cell.text for cell in notebook.cells if cell.cell_type == "code"]
    defined = Counter(name for text in code for name in definitions(text))
    candidates = [unit(name, class_folder) for name in unit_names(class_folder)]
    ranks = [
        (
            sum(exercise.name in ids for exercise in candidate.exercises),
            sum(defined[exercise.name] for exercise in candidate.exercises),
            candidate.name,
        )
        for candidate in candidates
    ]
    *matches, name = max(ranks, default=(0, 0, ""))
    if not any(matches):
        return UnreadableNotebook(
            "No exercise of this course is in the notebook. Hand in the notebook that was released."
        )
    return unit(name, class_folder)


def is_worked_on(notebook: RawNotebook, unit: Unit, class_folder: Path | None = None) -> bool:
    """Return whether a student edited a notebook: whether a cell's text is that of no released cell of the unit."""
    cells = released_cells(unit.name, class_folder)
    texts = {"", *(cell.text.strip() for cell in cells)}
    return not cells or any(cell.text.strip() not in texts for cell in notebook.cells if cell.grade_id != CARRIED)


def likenesses(notebook: RawNotebook, unit: Unit) -> list[Likeness]:
    """Return, for each cell of a notebook, the released cell that has the same grade_id and type, as a `Likeness`."""
    ids = [cell.grade_id for cell in notebook.cells]
    names = [
        name if unit.cell_types.get(name) == cell.cell_type else ""
        for name, cell in zip(ids, notebook.cells, strict=True)
    ]
    last = {name: position for position, name in enumerate(names)}
    return [Likeness(name, bool(name) and last[name] != position) for position, name in enumerate(names)]


def is_training(cell: RawCell, likeness: Likeness, unit: Unit) -> bool:
    """Return whether grading leaves a cell out because it trains a model, by its metadata, its id or its text.

    One of the three suffices, because programs that open notebooks may drop the others. A cell with a grade_id of the
    unit is never left out.
    """
    if cell.cell_type != "code" or likeness.name:
        return False
    has_our_id = bool(cell.cell_id) and cell.cell_id in unit.training_cells  # programs drop ids, of sources too
    return has_our_id or cell.text in unit.training_cells.values() or cell.autograder.training


def is_addition(cell: RawCell, likeness: Likeness, unit: Unit) -> bool:
    """Return whether, by its metadata, a cell contains only lines that a student added to a locked cell."""
    if cell.cell_type != "code" or likeness.name:
        return False
    name = cell.autograder.added_to
    return name in unit.instructor_cells or name in unit.check_cells or bool(_NUMBERED.fullmatch(name))


def is_words(cell: RawCell, unit: Unit) -> bool:
    """Return whether a cell contains prose and was a text cell of the unit that a student turned into a code cell."""
    return cell.cell_type == "code" and unit.cell_types.get(cell.grade_id) == "markdown" and _is_prose(cell.text)


def edits(notebook: RawNotebook, unit: Unit, likenesses: Sequence[Likeness]) -> dict[int, Edit]:
    """Return a student's edits of locked code cells, by the cell's position from 0. Unedited cells are left out.

    likenesses: one for each cell of the notebook. Only the first `_MOST_EDITED` edited cells are compared line by line,
    or fewer if the added lines would make the notebook too long. The others count as changed, and none of their lines
    are executed.
    """
    room = min(_MOST_EDITED, MAX_CELLS - len(notebook.cells))
    locked = unit.check_cells | unit.instructor_cells
    edited: dict[int, Edit] = {}
    for position, (cell, likeness) in enumerate(zip(notebook.cells, likenesses, strict=True)):
        text = locked.get(likeness.name, cell.text)
        edit = edit_of(text, cell.text) if text == cell.text or len(edited) < room else Edit(has_changes=True)
        if edit != Edit():
            edited[position] = edit
    return edited


def code_cells(notebook: RawNotebook, unit: Unit) -> list[CodeCell]:
    """Return the cells to execute, in the student's order.

    The exercises' check cells, training cells and a cell with the student check itself are left out. The instructor's
    cells have the text of the source notebook, regardless of the submission; if one was deleted, it is executed first.
    Lines that a student added to a locked cell are executed after it. If two cells have the same grade_id, both are
    executed, and the later one has the name.
    """
    exercises = {exercise.name for exercise in unit.exercises}
    checks = {exercise.check: exercise.name for exercise in unit.exercises}
    texts_of_instructor = frozenset(unit.instructor_cells.values())
    found = likenesses(notebook, unit)
    edited = edits(notebook, unit, found)
    checked: list[str] = []
    cells: list[CodeCell] = []

    def add(
        name: str, source: str, exercise: str | None = None, added_to: str = "", *, was_changed: bool = False
    ) -> None:
        cell = CodeCell(
            name,
            source,
            exercise,
            only_shows=source in unit.showing_cells,
            is_ours=source in texts_of_instructor and not added_to,
            checked=tuple(checked),
            added_to=added_to,
            is_stub=exercise is not None and is_stub(source, unit.stub_lines.get(exercise, ())),
            was_changed=was_changed,
        )
        cells.append(cell)
        checked.clear()

    number = 0
    for position, (cell, likeness) in enumerate(zip(notebook.cells, found, strict=True)):
        if is_addition(cell, likeness, unit):
            name = cell.autograder.added_to
            add(name + ADDED, cell.text, added_to=name)
            continue
        number += 1
        is_excluded = cell.cell_type != "code" or cell.grade_id == CARRIED or is_training(cell, likeness, unit)
        if is_excluded or is_words(cell, unit):
            continue
        edit = edited.get(position, Edit())
        name = cell_name(number, "" if likeness.is_copy else likeness.name)
        is_check = likeness.name in checks
        if not is_check:
            exercise = name if name in exercises else None
            ours = unit.instructor_cells.get(likeness.name)
            was_changed = edit.has_changes or (ours is not None and cell.autograder.changed)
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
    return deleted + [_without_overruled_stub(cell, cells) for cell in cells]


def _without_overruled_stub(cell: CodeCell, cells: Sequence[CodeCell]) -> CodeCell:
    """Return the cell; if it is an unchanged stub and another cell defines the answer, return it empty instead."""
    if cell.is_stub and any(cell.exercise in other.definitions for other in cells if other is not cell):
        return replace(cell, source="", exercise=None, is_stub=False)
    return cell


def filled_in(unit: str, answers: Mapping[str, str], class_folder: Path | None = None) -> bytes:
    """Return a unit's released notebook, as the bytes of a file, with answers in its solution cells.

    answers: the new text of cells, by their grade_id.
    """
    notebook = msgspec.json.decode(released(unit, class_folder).read_bytes())
    for cell in notebook["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = answers.get(grade_id, cell["source"])
    return msgspec.json.format(msgspec.json.encode(notebook), indent=1) + b"\n"


def words_of(code: str) -> str:
    """Return a code cell's prose, comments and strings as markdown; empty if the cell has any other code.

    >>> words_of("# Because the variance grows.")
    '```python\\n# Because the variance grows.\\n```'
    """
    if magic := _MARKDOWN_MAGIC.match(code):
        return code[magic.end() :]
    if _is_prose(code):
        return code
    statements = _statements(code) if _OF_IPYTHON.sub("", code).strip() else None
    return fenced(code) if statements is not None and all(map(_is_text_only, statements)) else ""


def fenced(code: str) -> str:
    """Return code as a code block in markdown."""
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code}\n{fence}"


def _is_prose(code: str) -> bool:
    """Return whether the text of a code cell is prose rather than Python, even unfinished Python."""
    return _statements(code) is None and not _UNFINISHED.search(code)


def _statements(code: str) -> list[ast.stmt] | None:
    """Return the statements of a code cell; None if it cannot be parsed.

    A cell that is too long to be parsed counts as one statement.
    """
    if len(code) > _LONGEST_PARSED:
        return [ast.Pass()]
    try:
        with warnings.catch_warnings(action="ignore"):  # about escapes in strings
            return ast.parse(_OF_IPYTHON.sub("", code)).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _is_text_only(statement: ast.stmt) -> bool:
    """Return whether a statement only contains, assigns or prints a string."""
    if not isinstance(statement, ast.Assign | ast.Expr):
        return False
    value = statement.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print":
        return all(isinstance(argument, ast.Constant | ast.JoinedStr) for argument in value.args)
    return isinstance(value, ast.Constant) and isinstance(value.value, str)

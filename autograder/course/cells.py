"""Match the cells of a submitted notebook with those of its unit.

The match determines the cells to execute, and the cells with the answers to the unit's written questions. Students also
write such an answer into a new cell next to the answer cell, turn that cell into code, or type the answer below the
question's text. Some programs drop the cell's name.
"""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from .locked_cells import Edit, edit_of
from .notebook import MAX_CELLS, CodeCell, RawCell, RawNotebook, UnreadableNotebook, cell_name, definitions
from .units import CHECK_PREFIX, Unit, is_stub, released, released_cells, unit, unit_names

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
_NOTHING_TYPED = re.compile(r"<br\s*/?>|&nbsp;|[\s*_`~>#\u200b-\u200f\u2060\ufeff]", re.I)
_LONGEST_BLANK = 500
"""Most characters that a cell may have in addition to the placeholder and still be tested for being blank."""
_MOST_NEIGHBOURS = 20
"""Most new cells next to a question that are searched for its answer."""


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
            "The notebook contains no exercise of this course. Submit the notebook that was released."
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


@dataclass(frozen=True)
class WrittenAnswer:
    """The answer to one written question."""

    status: Literal["answered", "unanswered", "missing"]
    """missing: the notebook has neither the answer cell nor an answer elsewhere."""
    text: str = ""
    """The answer in markdown; empty unless the question is answered."""
    found_in: str = ""
    """Description of the cells that contain the answer; empty for the answer cell itself."""
    moved: frozenset[int] = frozenset()
    """Positions, from 0, of cells other than the answer cell whose whole text belongs to the answer."""


def written_answers(notebook: RawNotebook, unit: Unit, class_folder: Path | None = None) -> dict[str, WrittenAnswer]:
    """Return the answer to each written question of the unit, by the question's name.

    An answer is the text of the question's answer cell, unless that is blank. Then it consists of everything written in
    a copy of that cell, in the cell turned into code, below the question's text, and in new cells between the question
    and the next released cell.
    """
    names = [name for name in unit.points if not name.startswith(CHECK_PREFIX)]
    released = released_cells(unit.name, class_folder)
    if not names or not released:
        return {}
    search = _Search(notebook, unit, released)
    return {name: search.answer(name) for name in names}


class _Search:
    """Searches one notebook for the answers to all written questions. No cell is part of two answers."""

    def __init__(self, notebook: RawNotebook, unit: Unit, released: Sequence[RawCell]) -> None:
        self._cells = notebook.cells
        self._unit = unit
        self._released = released
        self._positions: dict[str, int] = {}
        """Position of each released cell in its notebook, by each of its `_keys`."""
        for position, cell in enumerate(released):
            for key in _keys(cell):
                if not (key.startswith("text ") and cell.grade_id):
                    self._positions.setdefault(key, position)
        self._origins = [
            next((self._positions[key] for key in _keys(cell) if key in self._positions), None) for cell in self._cells
        ]
        """For each submitted cell, the position of the released cell it comes from; None if a student added it."""
        texts = (cell.text for cell in released if cell.cell_type == "markdown" and not cell.grade_id)
        self._released_lines = {line.strip() for text in texts for line in text.split("\n") if line.strip()}
        self._own = {
            likeness.name: position
            for position, likeness in enumerate(likenesses(notebook, unit))
            if likeness.name and not likeness.is_copy
        }
        self._taken: set[int] = set()

    def answer(self, name: str) -> WrittenAnswer:
        """Return the answer to the written question of this name."""
        question = self._positions.get(f"name {name}")
        if question is None:
            return WrittenAnswer("missing")
        own = self._own.get(name)
        placeholder = self._released[question].text
        if own is not None and not _is_blank(self._cells[own], placeholder):
            return WrittenAnswer("answered", self._cells[own].text)
        parts: list[str] = []
        found_in: list[str] = []
        moved: set[int] = set()
        for position, where, text in self._elsewhere(question, own):
            cell = self._cells[position]
            if position in self._taken or not (_is_typed(cell.text, placeholder) and _is_typed(text, placeholder)):
                continue
            self._taken.add(position)
            parts.append(text)
            found_in.append(where)
            if text == cell.text and (cell.cell_type != "code" or is_words(cell, self._unit)):
                moved.add(position)
        if parts:
            return WrittenAnswer(
                "answered", "\n\n".join(parts), " and ".join(dict.fromkeys(found_in)), frozenset(moved)
            )
        return WrittenAnswer("missing" if own is None and question not in self._origins else "unanswered")

    def _elsewhere(self, question: int, own: int | None) -> Iterator[tuple[int, str, str]]:
        """Yield the position, a description and the text of each cell that may contain a part of the answer.

        question: position of the released answer cell. own: position of the submitted answer cell; None if missing.
        """
        neighbours = dict(self._neighbours(question))
        for position, (cell, origin) in enumerate(zip(self._cells, self._origins, strict=True)):
            if position == own:
                continue
            if origin == question:
                is_text = cell.cell_type == "markdown"
                where = "a copy of its cell" if is_text else f"its cell, turned into {cell.cell_type}"
                yield position, where, _as_markdown(cell) or fenced(cell.text)
            elif origin in (question - 1, question + 1) and cell.cell_type == "markdown" and not cell.grade_id:
                where = "the cell of the question's text" if origin < question else "the text below its cell"
                yield position, where, self._typed_lines(cell.text)
            elif position in neighbours and (text := _as_markdown(cell)):
                yield position, neighbours[position], self._typed_lines(text)

    def _neighbours(self, question: int) -> Iterator[tuple[int, str]]:
        """Yield the position and a description of each new cell next to a question.

        question: position of the released answer cell.
        """
        before, run = -1, list[int]()
        for position, origin in enumerate([*self._origins, len(self._released)]):
            if origin is None:
                run += [position] if self._is_of_student(self._cells[position]) else []
                continue
            is_between = question not in self._origins and before < question < origin
            if before == question or is_between:
                yield from ((new, "a new cell below the question") for new in run[:_MOST_NEIGHBOURS])
            elif origin == question:
                yield from ((new, "a new cell above its cell") for new in run[-_MOST_NEIGHBOURS:])
            before, run = origin, []

    def _is_of_student(self, cell: RawCell) -> bool:
        """Return whether a cell that is not in the release is the student's: not the student check, not training."""
        return cell.grade_id != CARRIED and not is_training(cell, Likeness(""), self._unit)

    def _typed_lines(self, text: str) -> str:
        """Return a text without the lines that a text cell of the release contains."""
        lines = text.split("\n")
        typed = [line for line in lines if line.strip() not in self._released_lines]
        return text if typed == lines else "\n".join(typed).strip()


def _keys(cell: RawCell) -> list[str]:
    """Return the keys by which a cell is recognised: its name, its id and its text, if it has them."""
    keys = (("name", cell.grade_id), ("id", cell.cell_id), ("text", cell.text.strip()))
    return [f"{kind} {value}" for kind, value in keys if value]


def _is_blank(cell: RawCell, placeholder: str) -> bool:
    return bytes(cell.attachments) in (b"null", b"{}") and not _is_typed(cell.text, placeholder)


def _is_typed(text: str, placeholder: str) -> bool:
    """Return whether a text has content besides the released placeholder."""
    text = text.strip()
    return len(text) > _LONGEST_BLANK + len(placeholder) or _bare(text) not in ("", _bare(placeholder))


def _bare(text: str) -> str:
    return _NOTHING_TYPED.sub("", text).casefold()


def _as_markdown(cell: RawCell) -> str:
    """Return a cell's text as markdown; empty for a code cell that has code besides comments and strings."""
    return words_of(cell.text) if cell.cell_type == "code" else cell.text

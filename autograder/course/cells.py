"""Relate the cells of a submitted notebook to those of its unit.

The relation decides which cells are executed, and which hold the answers to the unit's written questions, regardless of
where in the notebook a student wrote them. Such an answer belongs into the question's own cell. Students also write it
into a new cell next to that one, turn the cell into code, or type it below the question's text; some programs drop the
cell's name.
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
"""The grade_id of the cell with which a notebook in a single file carries the student check. No unit has a cell of this
name, and grading executes none: both forms of a notebook get the same grade."""
ADDED = " (added lines)"
"""Ends the name of a cell with the lines that a student added to a locked cell."""
_MOST_EDITED = 50
_NUMBERED = re.compile(r"number \d{1,4}")
_LONGEST_PARSED = 20_000
"""Limit for the characters of a code cell that is parsed to tell prose from code."""
# No \s: it matches line ends too, and searching a cell of empty lines would take hours.
_MARKDOWN_MAGIC = re.compile(r"[ \t]*%%(?:markdown|html|latex)\b[^\n]*\n")
_OF_IPYTHON = re.compile(r"^[ \t]*(?:[!%?].*|[\w.]+\?+[ \t]*)$", re.M)
_UNFINISHED = re.compile(r"^[ \t]*(?:(?:def|class) \w+[ \t]*[(:]|import \w|from \w+ import |for \w+ in |@\w)", re.M)
"""Lines of code in a cell that cannot be parsed."""
_NOTHING_TYPED = re.compile(r"<br\s*/?>|&nbsp;|[\s*_`~>#\u200b-\u200f\u2060\ufeff]", re.I)
_LONGEST_BLANK = 500
"""Limit for the characters of a cell that contains nothing but marks of markdown."""
_MOST_NEIGHBOURS = 20
"""Limit for the new cells next to a question that are searched for its answer."""


@dataclass(frozen=True)
class Likeness:
    """The released cell that a cell of a submission corresponds to."""

    name: str
    """Its grade_id; empty if there is none."""
    is_copy: bool = False
    """True if a later cell corresponds to the same one and so has the name."""


def unit_of(notebook: RawNotebook, class_folder: Path | None = None) -> Unit | UnreadableNotebook:
    """Return the unit that a notebook belongs to, by its cells regardless of the file's name."""
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
    """Return whether any cell has a text that no released cell of the unit has. Executing cells changes no text."""
    cells = released_cells(unit.name, class_folder)
    texts = {"", *(cell.text.strip() for cell in cells)}
    return not cells or any(cell.text.strip() not in texts for cell in notebook.cells if cell.grade_id != CARRIED)


def likenesses(notebook: RawNotebook, unit: Unit) -> list[Likeness]:
    """Return for each cell the released cell with its grade_id, if that is of the same type."""
    ids = [cell.grade_id for cell in notebook.cells]
    names = [
        name if unit.cell_types.get(name) == cell.cell_type else ""
        for name, cell in zip(ids, notebook.cells, strict=True)
    ]
    last = {name: position for position, name in enumerate(names)}
    return [Likeness(name, bool(name) and last[name] != position) for position, name in enumerate(names)]


def is_training(cell: RawCell, likeness: Likeness, unit: Unit) -> bool:
    """Return whether grading leaves a cell out because it trains a model: by its metadata, its id or its text.

    Programs that open notebooks may drop some of these. A cell that has a name in the unit is never left out.
    """
    if cell.cell_type != "code" or likeness.name:
        return False
    has_our_id = bool(cell.cell_id) and cell.cell_id in unit.training_cells  # programs drop ids, of sources too
    return has_our_id or cell.text in unit.training_cells.values() or cell.autograder.training


def is_addition(cell: RawCell, likeness: Likeness, unit: Unit) -> bool:
    """Return whether the metadata mark a cell as holding only lines that a student added to a locked cell."""
    if cell.cell_type != "code" or likeness.name:
        return False
    name = cell.autograder.added_to
    return name in unit.instructor_cells or name in unit.check_cells or bool(_NUMBERED.fullmatch(name))


def is_words(cell: RawCell, unit: Unit) -> bool:
    """Return whether a code cell is a text cell of the unit that a student turned into code, with prose in it."""
    return cell.cell_type == "code" and unit.cell_types.get(cell.grade_id) == "markdown" and _is_prose(cell.text)


def edits(notebook: RawNotebook, unit: Unit, likenesses: Sequence[Likeness]) -> dict[int, Edit]:
    """Return the edits of locked code cells, by position counted from 0. Cells without edits are left out.

    likenesses: those of all cells. From the cell after `_MOST_EDITED` on, and if the additions would make the notebook
    too long, edited cells count as changed and none of their lines are executed.
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

    Checks and training cells are left out, and so is a check that the notebook carries. The instructor's own cells have
    the text of the source notebook, regardless of the submission; a deleted one is executed first. Lines that a student
    added to a locked cell are executed after it. Of two cells with one grade_id both are executed, and the later one
    has the name.
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
    """Return an empty cell without an exercise if the cell is an untouched stub and another cell has an answer."""
    if cell.is_stub and any(cell.exercise in other.definitions for other in cells if other is not cell):
        return replace(cell, source="", exercise=None, is_stub=False)
    return cell


def filled_in(unit: str, answers: Mapping[str, str], class_folder: Path | None = None) -> bytes:
    """Return a released notebook with answers typed into its solution cells, as a student would save it."""
    notebook = msgspec.json.decode(released(unit, class_folder).read_bytes())
    for cell in notebook["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = answers.get(grade_id, cell["source"])
    return msgspec.json.format(msgspec.json.encode(notebook), indent=1) + b"\n"


def words_of(code: str) -> str:
    """Return the words in a code cell as markdown: prose, comments and strings; empty for code that computes.

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
    """Return code as a block of markdown."""
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code}\n{fence}"


def _is_prose(code: str) -> bool:
    """Return whether the text of a code cell is prose rather than Python, even unfinished Python."""
    return _statements(code) is None and not _UNFINISHED.search(code)


def _statements(code: str) -> list[ast.stmt] | None:
    """Return the statements of a cell; None if it cannot be parsed. A cell too long to be parsed counts as code."""
    if len(code) > _LONGEST_PARSED:
        return [ast.Pass()]
    try:
        with warnings.catch_warnings(action="ignore"):  # about escapes in strings
            return ast.parse(_OF_IPYTHON.sub("", code)).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _is_text_only(statement: ast.stmt) -> bool:
    """Return whether a statement consists of a string, or only assigns or prints one."""
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
    """missing: neither the question's cell nor an answer is in the notebook."""
    text: str = ""
    """Markdown; empty unless it is answered."""
    found_in: str = ""
    """Description of the cell that held the answer; empty for the question's own cell."""
    moved: frozenset[int] = frozenset()
    """Positions from 0 of the other cells whose whole text belongs to the answer."""


def written_answers(notebook: RawNotebook, unit: Unit, class_folder: Path | None = None) -> dict[str, WrittenAnswer]:
    """Return the answer to each written question of the unit, by the question's name.

    An answer is taken from the question's own cell, if something is written there. Otherwise it consists of everything
    that was written elsewhere: in a copy of the cell, in the cell turned into code, below the question's text, in new
    cells between the question and the next released cell.
    """
    names = [name for name in unit.points if not name.startswith(CHECK_PREFIX)]
    released = released_cells(unit.name, class_folder)
    if not names or not released:
        return {}
    search = _Search(notebook, unit, released)
    return {name: search.answer(name) for name in names}


class _Search:
    """The search of one notebook. A cell belongs to the answer of one question at most."""

    def __init__(self, notebook: RawNotebook, unit: Unit, released: Sequence[RawCell]) -> None:
        self._cells = notebook.cells
        self._unit = unit
        self._released = released
        self._positions: dict[str, int] = {}
        """Position of each released cell, by the keys that identify it."""
        for position, cell in enumerate(released):
            for key in _keys(cell):
                if not (key.startswith("text ") and cell.grade_id):
                    self._positions.setdefault(key, position)
        self._origins = [
            next((self._positions[key] for key in _keys(cell) if key in self._positions), None) for cell in self._cells
        ]
        """For each cell the position of the released cell that it once was; None for a cell that a student added."""
        texts = (cell.text for cell in released if cell.cell_type == "markdown" and not cell.grade_id)
        self._released_lines = {line.strip() for text in texts for line in text.split("\n") if line.strip()}
        self._own = {
            likeness.name: position
            for position, likeness in enumerate(likenesses(notebook, unit))
            if likeness.name and not likeness.is_copy
        }
        self._taken: set[int] = set()

    def answer(self, name: str) -> WrittenAnswer:
        """Return the answer to one question."""
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
        """Yield each cell that may hold a part of the answer: its position, a description of it, its text."""
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
        """Yield the position and a description of the new cells next to a question."""
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
        """Return whether a new cell is neither a check that the notebook carries nor a training cell."""
        return cell.grade_id != CARRIED and not is_training(cell, Likeness(""), self._unit)

    def _typed_lines(self, text: str) -> str:
        """Return the text without the lines that were released."""
        lines = text.split("\n")
        typed = [line for line in lines if line.strip() not in self._released_lines]
        return text if typed == lines else "\n".join(typed).strip()


def _keys(cell: RawCell) -> list[str]:
    """Return the keys that a cell may be recognised by: its name, its id and its text."""
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
    """Return the words in a cell; empty for code that computes."""
    return words_of(cell.text) if cell.cell_type == "code" else cell.text

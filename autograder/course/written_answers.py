"""Find the answers to a unit's written questions, also in other cells than those meant for them.

Students also write an answer into a new cell next to the answer cell, turn that cell into code, or type the answer
below the question's text. Some programs drop the cell's name.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .cells import CARRIED, Likeness, fenced, is_training, is_words, likenesses, words_of
from .notebook import RawCell, RawNotebook
from .units import CHECK_PREFIX, Unit, released_cells

_NOTHING_TYPED = re.compile(r"<br\s*/?>|&nbsp;|[\s*_`~>#\u200b-\u200f\u2060\ufeff]", re.I)
_LONGEST_BLANK = 500
"""Most characters that a cell may have in addition to the placeholder and still be tested for being blank."""
_MOST_NEIGHBOURS = 20
"""Most new cells next to a question that are searched for its answer."""


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

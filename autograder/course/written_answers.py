"""Find the answers to a unit's written questions, wherever in the notebook a student wrote them.

An answer belongs into the question's own cell. Students also write it into a new cell next to that one, turn the cell
into code, or type it below the question's text; some programs drop the cell's name.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from ..notebook import RawCell, RawNotebook, parse
from . import CHECK_PREFIX, Unit, points, released
from .cells import CARRIED, Likeness, is_training, is_words, likenesses
from .words_in_code import fenced, words_of

_NOTHING_TYPED = re.compile(r"<br\s*/?>|&nbsp;|[\s*_`~>#\u200b-\u200f\u2060\ufeff]", re.I)
_LONGEST_BLANK = 500
"""Characters of a cell in which nothing is typed but marks of markdown."""
_MOST_NEIGHBOURS = 20
"""New cells next to a question that are searched for its answer."""


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
    """The places of the other cells whose whole text it is, counted from 0."""


@dataclass(frozen=True)
class _Released:
    """A unit's notebook as students get it."""

    cells: tuple[RawCell, ...]
    places: Mapping[str, int]
    """By a cell's name, its id and its text."""
    lines: frozenset[str]
    """Lines of the released text cells."""

    def place(self, cell: RawCell) -> int | None:
        """The place of the released cell that this cell once was; None for a cell that a student added."""
        keys = (f"name {cell.grade_id}", f"id {cell.cell_id}", f"text {cell.text.strip()}")
        return next((self.places[key] for key in keys if key in self.places), None)


def written_answers(notebook: RawNotebook, unit: Unit, class_folder: Path | None = None) -> dict[str, WrittenAnswer]:
    """Return the answer to each written question of the unit, by the question's name.

    An answer is taken from the question's own cell, if something is written there. Else it is made of all that was
    written elsewhere: in a copy of the cell, in the cell turned into code, below the question's text, in new cells
    between the question and the next released cell.
    """
    names = [name for name in points(unit.name, class_folder) if not name.startswith(CHECK_PREFIX)]
    path = released(unit.name, class_folder)
    if not names or not path.is_file():
        return {}
    search = _Search(notebook, unit, _released(path, path.stat().st_mtime_ns))
    return {name: search.answer(name) for name in names}


class _Search:
    """The search of one notebook; a cell is the answer to one question at most."""

    def __init__(self, notebook: RawNotebook, unit: Unit, release: _Released) -> None:
        self._cells = notebook.cells
        self._release = release
        self._names = [likeness.name * (not likeness.is_copy) for likeness in likenesses(notebook, unit)]
        self._unit = unit
        self._taken: set[int] = set()

    @cached_property
    def _places(self) -> list[int | None]:
        """For each cell the place of the released cell that it once was."""
        return [self._release.place(cell) for cell in self._cells]

    def answer(self, name: str) -> WrittenAnswer:
        """The answer to one question."""
        question = self._release.places.get(f"name {name}")
        if question is None:
            return WrittenAnswer("missing")
        own = self._names.index(name) if name in self._names else None
        placeholder = self._release.cells[question].text
        if own is not None and not _is_blank(self._cells[own], placeholder):
            return WrittenAnswer("answered", self._cells[own].text)
        parts: list[str] = []
        found_in: list[str] = []
        moved: set[int] = set()
        for at, where, text in self._elsewhere(question, own):
            cell = self._cells[at]
            if at in self._taken or not (_typed(cell.text, placeholder) and _typed(text, placeholder)):
                continue
            self._taken.add(at)
            parts.append(text)
            found_in += [where] if where not in found_in else []
            moved |= {at} if text == cell.text and (cell.cell_type != "code" or is_words(cell, self._unit)) else set()
        if parts:
            return WrittenAnswer("answered", "\n\n".join(parts), " and ".join(found_in), frozenset(moved))
        return WrittenAnswer("missing" if own is None and question not in self._places else "unanswered")

    def _elsewhere(self, question: int, own: int | None) -> Iterator[tuple[int, str, str]]:
        """Each cell that may hold a part of the answer, with where it is, in words, and its text."""
        near = dict(self._neighbours(question))
        for at, (cell, place) in enumerate(zip(self._cells, self._places, strict=True)):
            if at == own:
                continue
            if place == question:
                kind = (
                    f"its cell, turned into {cell.cell_type}" if cell.cell_type != "markdown" else "a copy of its cell"
                )
                yield at, kind, _as_markdown(cell) or fenced(cell.text)
            elif place in (question - 1, question + 1) and cell.cell_type == "markdown" and not cell.grade_id:
                where = "the cell of the question's text" if place < question else "the text below its cell"
                yield at, where, self._added(cell.text)
            elif at in near and (text := _as_markdown(cell)):
                yield at, near[at], self._added(text)

    def _neighbours(self, question: int) -> Iterator[tuple[int, str]]:
        """The new cells next to a question, with where they are."""
        before, run = -1, list[int]()
        for at, place in enumerate([*self._places, len(self._release.cells)]):
            if place is None:
                run.append(at)
                continue
            between = question not in self._places and before < question < place
            if before == question or between:
                yield from ((new, "a new cell below the question") for new in self._of_students(run[:_MOST_NEIGHBOURS]))
            elif place == question:
                yield from ((new, "a new cell above its cell") for new in self._of_students(run[-_MOST_NEIGHBOURS:]))
            before, run = place, []

    def _of_students(self, run: list[int]) -> Iterator[int]:
        for at in run:
            cell = self._cells[at]
            if cell.grade_id != CARRIED and not is_training(cell, Likeness("", is_copy=False), self._unit):
                yield at

    def _added(self, text: str) -> str:
        """The text without the lines that were released."""
        lines = text.split("\n")
        if not any(line.strip() in self._release.lines for line in lines if line.strip()):
            return text
        return "\n".join(line for line in lines if line.strip() not in self._release.lines).strip()


@lru_cache(maxsize=64)
def _released(path: Path, changed: int) -> _Released:
    notebook = parse(path.read_bytes())
    assert isinstance(notebook, RawNotebook)
    places: dict[str, int] = {}
    for place, cell in enumerate(notebook.cells):
        for key, value in (("name", cell.grade_id), ("id", cell.cell_id), ("text", cell.text.strip())):
            if value and not (key == "text" and cell.grade_id):
                places.setdefault(f"{key} {value}", place)
    texts = (cell.text for cell in notebook.cells if cell.cell_type == "markdown" and not cell.grade_id)
    lines = frozenset(line.strip() for text in texts for line in text.split("\n") if line.strip())
    return _Released(tuple(notebook.cells), places, lines)


def _is_blank(cell: RawCell, placeholder: str) -> bool:
    return bytes(cell.attachments) in (b"null", b"{}") and not _typed(cell.text, placeholder)


def _typed(text: str, placeholder: str) -> bool:
    """Return whether a text has content besides the released placeholder."""
    text = text.strip()
    if len(text) > _LONGEST_BLANK + len(placeholder):
        return True
    return _bare(text) not in ("", _bare(placeholder))


def _bare(text: str) -> str:
    return _NOTHING_TYPED.sub("", text).casefold()


def _as_markdown(cell: RawCell) -> str:
    """The words in a cell; empty for code that computes."""
    return words_of(cell.text) if cell.cell_type == "code" else cell.text

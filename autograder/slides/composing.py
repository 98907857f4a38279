"""Makes a unit's slides of its own notebook: what stands on which, in which order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat

from .. import course
from ..build.lesson_calls import called_in
from ..build.points_told import tells_points
from ..build.source_notebook import HOW_TO_HAND_IN, QUESTION
from ..handout.names import LESSON, data_file
from ..handout.unit_data import read_unit
from .figures import Figure, figures, height
from .running import NotRun, run
from .text import Kind, Piece, pieces

ROOM = 15.0
"""Lines of text that a slide holds below its heading."""
_BELOW_AN_ANSWER = 4
"""Lines: as much of what a cell shows stands on a guess's answer, if nothing is said in between."""
_CALLS_CHECK = "check()"
_ABOUT_THE_CELL = "`...`"
"""In a sentence that says how a guess is typed, which nobody does on a slide."""


@dataclass(frozen=True)
class Slide:
    """One slide; a title, a text, what a cell shows, a question or its answer."""

    heading: str
    """As markdown."""
    text: Sequence[Piece] = ()
    figures: Sequence[Figure] = ()
    kind: str = "text"
    answer: str = ""
    because: str = ""


@dataclass(frozen=True)
class Deck:
    """A unit's slides."""

    unit: str
    title: str
    slides: list[Slide]


def compose(root: Path, unit_name: str) -> Deck:
    """The slides of a unit of the course, or of the class, in `root`; runs its notebook.

    Raises UnknownUnit, UnusableUnit and NotRun.
    """
    course.unit(unit_name, root)
    notebook = course.source(unit_name, root)
    cells = nbformat.read(notebook, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code" and not _is_check(cell)]
    outputs = run(notebook, code, course.accompanying_files(unit_name, root))
    slides = _Composer(_guesses(course.released(unit_name, root))).composed(cells, outputs)
    return Deck(unit_name, (slides[0].heading if slides else "") or unit_name, slides)


def _guesses(released: Path) -> dict[str, Any]:
    """Return the guesses of a unit, with their answers; none if it has none. released: its notebook for students."""
    file = released.with_name(data_file(released.stem))
    try:
        found: dict[str, Any] = read_unit(file).get(LESSON, {}).get("guesses", {}) if file.exists() else {}
    except (OSError, ValueError, AttributeError) as error:
        raise NotRun(f"{file} cannot be read: {error}. `autograder build` writes it.") from None
    return found


def _is_check(cell: Any) -> bool:
    """Whether it tells how far a student is, or asks or helps one: nothing of that is on a slide."""
    about = cell.metadata.get("nbgrader", {})
    return bool(about.get("grade")) or cell.source.strip() == _CALLS_CHECK or bool(_calls(cell) & {"guess", "hint"})


def _calls(cell: Any) -> set[str]:
    return {call.function for call in called_in(cell.source)}


@dataclass
class _Composer:
    """Goes through the cells; `text` is what was read and is on no slide yet."""

    guesses: Mapping[str, Any]
    slides: list[Slide] = field(default_factory=list)
    heading: str = ""
    text: list[Piece] = field(default_factory=list)
    left_out: list[Piece] = field(default_factory=list)
    """What led to the exercise before; it is said after all where the next cell shows numbers and nothing is said."""
    begins: bool = False
    """Whether the section's heading is on no slide yet."""

    def composed(self, cells: Sequence[Any], outputs: Mapping[str, list[Any]]) -> list[Slide]:
        for number, cell in enumerate(cells):
            if cell.cell_type == "markdown":
                self._read(cell, is_first=number == 0)
            elif cell.cell_type == "code":
                self._show(cell, outputs.get(cell.id, []))
        self._flush()
        return self.slides

    def _read(self, cell: Any, *, is_first: bool) -> None:
        if "nbgrader" in cell.metadata or cell.id.startswith(QUESTION) or cell.id == HOW_TO_HAND_IN:
            self._flush()
            return
        found = [one for one in pieces(cell.source) if not tells_points(one.source)]
        for one in _introduction(found) if is_first else found:
            if one.kind is Kind.HEADING and one.level <= 2:
                self._flush()
                self.heading, self.begins = one.source, True
            elif one.kind is Kind.HEADING:
                self.text.append(Piece(Kind.PROSE, f"**{one.source}**"))
            else:
                self.text.append(one)
        if is_first:
            self._flush(kind="title")

    def _show(self, cell: Any, outputs: list[Any]) -> None:
        about = cell.metadata.get("nbgrader", {})
        asked = [call.name for call in called_in(cell.source) if call.function == "guess"]
        shown = figures(outputs)
        if asked:
            self._ask(asked)
        elif about.get("grade") or "hint" in _calls(cell):
            return
        elif cell.source.strip() == _CALLS_CHECK:
            self.text, self.begins = [], False
        elif about.get("solution"):
            self._lead_to_an_exercise()
        elif shown:
            self._draw(shown)
        elif self.text and self.text[-1].source.endswith(":"):
            self.text.pop()  # it announces code

    def _ask(self, names: Sequence[str]) -> None:
        """The last paragraph asks; what stands before it comes first."""
        question = [self.text.pop()] if self.text else []
        self._flush()
        question = [Piece(one.kind, _without_typing(one.source)) for one in question]
        self._add(question, kind="question")
        for guess in [self.guesses[name] for name in names if name in self.guesses]:
            self.slides.append(
                Slide(self.heading, question, (), "answer", _said(guess["answer"]), str(guess["because"]))
            )

    def _lead_to_an_exercise(self) -> None:
        """Of what only says what to write, the formulas and tables are for all."""
        left_out = list[Piece]()
        if not self.begins and not any(one.kind in (Kind.FORMULA, Kind.TABLE) for one in self.text):
            left_out, self.text = self.text, []
        self._flush()
        self.left_out = left_out

    def _draw(self, shown: list[Figure]) -> None:
        """What a cell shows, below as much of the text before it as there is room for."""
        high = height(shown)
        if not self.text and self.left_out and not any(one.picture for one in shown):  # a picture has its own titles
            self.text = self.left_out if _together(self.left_out, shown, high) <= ROOM else []
        if not self.text and self.slides and self.slides[-1].kind == "answer" and high <= _BELOW_AN_ANSWER:
            self.slides[-1] = replace(self.slides[-1], figures=[*self.slides[-1].figures, *shown])
            return
        kept = list[Piece]()
        while self.text and _together([self.text[-1], *kept], shown, high) <= ROOM:
            kept.insert(0, self.text.pop())
        self._flush(announces=True)
        self._add(kept, shown, "figure")

    def _flush(self, kind: str = "text", *, announces: bool = False) -> None:
        """Puts the text on slides, as many as it needs. announces: whether what it speaks of comes on the next."""
        rest, self.text, self.left_out = self.text, [], []
        if not rest and self.begins and not announces:
            self._add([], kind=kind)
        while rest:
            count = _fitting(rest)
            self._add(rest[:count], kind=kind)
            rest = rest[count:]

    def _add(self, text: Sequence[Piece], shown: Sequence[Figure] = (), kind: str = "text") -> None:
        self.slides.append(Slide(self.heading, text, shown, kind))
        self.begins = False


def are_a_pair(text: Sequence[Piece], shown: Sequence[Figure]) -> bool:
    """Whether they end in a table and the one of what was computed, which stand beside each other."""
    return bool(text) and text[-1].kind is Kind.TABLE and len(shown) == 1 and bool(shown[0].rows)


def _together(text: Sequence[Piece], shown: Sequence[Figure], high: float) -> float:
    """How high text and what is shown are on a slide."""
    if are_a_pair(text, shown):
        return sum(one.height for one in text[:-1]) + max(text[-1].height, high)
    return sum(one.height for one in text) + high


def _introduction(found: list[Piece]) -> list[Piece]:
    """Of the first cell what it is about; how to work with the notebook comes after its first list."""
    for number, one in enumerate(found):
        if one.kind is Kind.LIST:
            return found[: number + 1]
    return found[:2]


def _fitting(text: Sequence[Piece]) -> int:
    """How many of these pieces, at least one, a slide holds; what announces the next goes with that."""
    used, count = 0.0, 0
    for one in text:
        used += one.height
        if count and used > ROOM:
            break
        count += 1
    if count < len(text):
        while count > 1 and text[count - 1].leads_on:
            count -= 1
    return count


def _without_typing(question: str) -> str:
    """A question without the sentences on how to type the guess."""
    before, dots, _ = question.partition(_ABOUT_THE_CELL)
    if not dots:
        return question
    return before[: max(before.rfind(end) for end in ".?!") + 1].rstrip()


def _said(answer: Any) -> str:
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return str(answer)

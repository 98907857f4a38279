"""A notebook read as data. Nothing in it is believed: neither its name, nor its points, nor the instructor's cells."""

import codecs
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from . import course

MAX_BYTES = 16 << 20
MAX_CHARACTERS = 200_000
"""Of a cell that is run, or searched for what it defines."""
MAX_CELLS = 2_000
_MAX_NAME = 100

# No \s: it takes in line ends too, and a cell of empty lines would be searched for hours.
_DEFINITION = re.compile(r"^[ \t]*(?:async def|def|class)[ \t]+(\w+)", re.M)


class Damaged(Exception):
    """The file cannot be marked; `str()` is a sentence that says why and what to do."""


class RawMetadata(msgspec.Struct):
    """What a cell says of itself. Only the name that nbgrader gave it is looked at, so the rest takes no memory."""

    nbgrader: msgspec.Raw = msgspec.Raw(b"null")


class _Named(msgspec.Struct):
    grade_id: msgspec.Raw


class RawCell(msgspec.Struct):
    """A cell as nbformat 4 writes it; of an unknown cell type nothing is run."""

    cell_type: str
    source: str | list[str] | None = ""
    metadata: RawMetadata | None = None

    @property
    def text(self) -> str:
        return course.joined(self.source or "")

    @property
    def grade_id(self) -> str:
        """nbgrader's name of the cell, or an empty string."""
        try:
            named = msgspec.json.decode((self.metadata or RawMetadata()).nbgrader, type=_Named)
            return msgspec.json.decode(named.grade_id, type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""


class RawNotebook(msgspec.Struct):
    """A notebook as nbformat 4 writes it, as far as marking needs it."""

    nbformat: int
    cells: list[RawCell]


@dataclass(frozen=True)
class CodeCell:
    """A cell to run."""

    name: str
    source: str
    exercise: str | None
    """The exercise whose solution cell this is."""
    only_shows: bool = False
    """Whether it stands as it was released, and only shows what other cells made."""

    def defines(self, name: str) -> bool:
        """Whether the text of the cell defines this function or class, or means to."""
        return self.exercise == name or name in self._defined

    @property
    def names(self) -> frozenset[str]:
        """The words in the cell's text that could be names in its code."""
        return frozenset(re.findall(r"\w+", self.source[:MAX_CHARACTERS]))

    @cached_property
    def _defined(self) -> frozenset[str]:
        return frozenset(_DEFINITION.findall(self.source[:MAX_CHARACTERS]))


def read(path: Path) -> bytes:
    """The bytes of a notebook file; raises Damaged where it is not a regular file of a sensible size."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise Damaged("This is not a regular file. Hand in the notebook itself, not a link or a folder.")
        if status.st_size > MAX_BYTES:
            size = f"{status.st_size / 2**20:.0f} MB, more than {MAX_BYTES >> 20} MB"
            raise Damaged(
                f"The file has {size}. Clear the outputs (Kernel, Restart and Clear Outputs) and save it again."
            )
        return path.read_bytes()
    except OSError as error:
        raise Damaged(f"The file cannot be read: {error.strerror}.") from None


def parse(content: bytes) -> RawNotebook:
    """The cells of a notebook; raises Damaged."""
    try:
        notebook = msgspec.json.decode(content.removeprefix(codecs.BOM_UTF8), type=RawNotebook)
    except msgspec.ValidationError as error:
        raise Damaged(f"The file is JSON but not a Jupyter notebook: {error}. Save it from Jupyter again.") from None
    except RecursionError:
        raise Damaged("The file is nested too deeply to be a notebook. Save it from Jupyter again.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Damaged("The file is not a notebook: its content is not JSON. Save it from Jupyter again.") from None
    if notebook.nbformat != 4:
        raise Damaged(
            f"The notebook has format {str(notebook.nbformat)[:9]}; format 4 is needed. Save it from Jupyter again."
        )
    if not notebook.cells:
        raise Damaged("The notebook has no cells.")
    if len(notebook.cells) > MAX_CELLS:
        raise Damaged(
            f"The notebook has {len(notebook.cells)} cells, more than {MAX_CELLS}. Delete those that you do not need."
        )
    return notebook


def unit_of(notebook: RawNotebook) -> course.Unit:
    """The unit that a notebook belongs to, by its cells' grade_ids, whatever the file is called; raises Damaged."""
    ids = {cell.grade_id for cell in notebook.cells}
    code = [CodeCell("", cell.text, None) for cell in notebook.cells if cell.cell_type == "code"]
    found = [
        (
            sum(exercise.name in ids for exercise in unit.exercises),
            sum(cell.defines(exercise.name) for exercise in unit.exercises for cell in code),
            unit.name,
        )
        for unit in map(course.unit, course.unit_names())
    ]
    *hits, name = max(found, default=(0, 0, ""))
    if not any(hits):
        raise Damaged("No exercise of this course is in the notebook. Hand in the notebook that was released.")
    return course.unit(name)


def filled_in(unit: str, answers: Mapping[str, str]) -> bytes:
    """A released notebook with answers typed into its solution cells, as a student saves it."""
    path = course.RELEASE / unit / f"{unit}.ipynb"
    released = msgspec.json.decode(path.read_bytes())
    for cell in released["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") in answers:
            cell["source"] = answers[cell["metadata"]["nbgrader"]["grade_id"]]
    return msgspec.json.format(msgspec.json.encode(released), indent=1) + b"\n"


def cell_name(number: int, grade_id: str) -> str:
    """What a cell is called in reports: its grade_id, or its place in the notebook counted from 1."""
    return printable(grade_id[:_MAX_NAME]) or f"number {number}"


def printable(name: str) -> str:
    """A stranger's name for something, which may hold a terminal's control codes or be no text at all."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)


def code_cells(notebook: RawNotebook, unit: course.Unit) -> list[CodeCell]:
    """The cells to run, in the student's order.

    Checks are left out. Of the instructor's own cells the source's text is run, whatever stands in the notebook;
    one that was deleted is run first. Where a cell stands twice both run, so of two definitions the last counts.
    """
    exercises = {exercise.name for exercise in unit.exercises}
    checks = {exercise.check for exercise in unit.exercises}
    cells: list[CodeCell] = []
    for number, cell in enumerate(notebook.cells, start=1):
        grade_id = cell.grade_id
        if cell.cell_type != "code" or grade_id in checks:
            continue
        source = unit.instructor_cells.get(grade_id, cell.text)
        exercise = grade_id if grade_id in exercises else None
        cells.append(CodeCell(cell_name(number, grade_id), source, exercise, cell.text in unit.showing_cells))
    present = {cell.name for cell in cells}
    deleted = [
        CodeCell(grade_id, source, None)
        for grade_id, source in unit.instructor_cells.items()
        if grade_id not in present
    ]
    return deleted + cells

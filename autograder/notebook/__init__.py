"""A notebook read as data. Nothing in it is trusted: not its name, not its points, not the instructor's cells."""

import codecs
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from .format_3 import OldCell, old_cells
from .repair import repaired

MAX_BYTES = 16 << 20
"""For a notebook without its outputs."""
MAX_CHARACTERS = 200_000
"""For a cell that is run, or searched for what it defines."""
MAX_CELLS = 2_000
MAX_LINES = 1_000_000
"""For all cells: a notebook is written line by line, and each line takes sixty bytes of memory or more."""
_MAX_NAME = 100
_OLD_FORMATS = (2, 3)

# Looks at each character once, whatever it is: Python's tokenizer takes hours on a string that never ends.
# What is repeated stands in `(?>...)`: see `handed_in.without_outputs`.
_WORD = re.compile(
    r"""\#[^\n]*+
    | '''(?>[^'\\]|\\.|'(?!''))*+(?:''')? | "{3}(?>[^"\\]|\\.|"(?!""))*+(?:"{3})?
    | '(?>[^'\\\n]|\\.)*+'? | "(?>[^"\\\n]|\\.)*+"?
    | \d\w*+ | (?P<name>\w++)""",
    re.S | re.X,
)
# No \s: it matches line ends too, and searching a cell of empty lines would take hours.
_DEFINITION = re.compile(r"^[ \t]*(?:async def|def|class)[ \t]+(\w+)", re.M)

# The Default_Ignorable_Code_Points that Python considers printable: fillers and variation selectors.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"  #
)


_S = TypeVar("_S")


class Damaged(msgspec.Struct, frozen=True):
    """Why a file cannot be marked, and what to do: it stands where what was read of it would."""

    sentence: str

    def __str__(self) -> str:
        return self.sentence


class RawMetadata(msgspec.Struct):
    """A cell's metadata. Only the name that nbgrader gave the cell, and what the kit says, is ever decoded."""

    nbgrader: msgspec.Raw = msgspec.Raw(b"null")
    autograder: msgspec.Raw = msgspec.Raw(b"null")


class _Named(msgspec.Struct):
    grade_id: msgspec.Raw


class _Training(msgspec.Struct):
    training: bool


class _Added(msgspec.Struct):
    added_to: str


class _Changed(msgspec.Struct):
    changed: bool


class RawCell(msgspec.Struct):
    """A cell as nbformat 4 writes it; a cell of unknown type is not run."""

    cell_type: str
    source: str | list[str] | None = ""
    metadata: RawMetadata | None = None
    id: msgspec.Raw = msgspec.Raw(b'""')
    attachments: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def text(self) -> str:
        return joined(self.source or "")

    @property
    def grade_id(self) -> str:
        """nbgrader's name for the cell, or an empty string."""
        try:
            named = msgspec.json.decode((self.metadata or RawMetadata()).nbgrader, type=_Named)
            return msgspec.json.decode(named.grade_id, type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""

    @property
    def cell_id(self) -> str:
        """nbformat's name for the cell, which programs may change; or an empty string."""
        try:
            return msgspec.json.decode(self.id, type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""

    @property
    def says_training(self) -> bool:
        """Whether its metadata say that it trains something."""
        said = self._said(_Training)
        return said is not None and said.training

    @property
    def says_added_to(self) -> str:
        """The cell that its lines were added to, as its metadata say; or an empty string."""
        said = self._said(_Added)
        return said.added_to if said else ""

    @property
    def says_changed(self) -> bool:
        """Return whether the cell's metadata mark it as a locked cell with changed lines."""
        said = self._said(_Changed)
        return said is not None and said.changed

    def _said(self, form: type[_S]) -> _S | None:
        if self.metadata is None or self.metadata.autograder == b"null":
            return None
        try:
            return msgspec.json.decode(self.metadata.autograder, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


class RawNotebook(msgspec.Struct):
    """A notebook as nbformat 4 writes it, as far as marking needs it; one of format 3 is converted."""

    nbformat: int
    cells: list[RawCell]


class _NotebookFile(msgspec.Struct):
    """A notebook as formats 3 and 4 write it."""

    nbformat: int
    cells: list[RawCell] | msgspec.UnsetType = msgspec.UNSET
    worksheets: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def notebook(self) -> RawNotebook:
        """The notebook in format 4; raises msgspec.ValidationError."""
        if self.nbformat in _OLD_FORMATS and self.cells is msgspec.UNSET:
            return RawNotebook(4, [_converted(cell) for cell in old_cells(self.worksheets)])
        if self.cells is msgspec.UNSET:
            raise msgspec.ValidationError("Object missing required field `cells`")
        return RawNotebook(self.nbformat, self.cells)


def _converted(cell: OldCell) -> RawCell:
    return RawCell(cell.kind, cell.text, msgspec.json.decode(cell.metadata, type=RawMetadata | None))


@dataclass(frozen=True)
class CodeCell:
    """A cell to run."""

    name: str
    source: str
    exercise: str | None
    """The exercise whose solution cell this is."""
    only_shows: bool = False
    """Whether it is unchanged since the release, and only shows what other cells made."""
    is_ours: bool = False
    """Whether its text is the instructor's."""
    checked: tuple[str, ...] = ()
    """The exercises whose check cells stand above this cell and below the one before it."""
    added_to: str = ""
    """The locked cell that a student added these lines to."""
    is_stub: bool = False
    """True if the cell is a stub that the student left unchanged."""
    was_changed: bool = False
    """True if a student changed lines of this locked cell."""

    def defines(self, name: str) -> bool:
        """Return whether the cell defines this function or class, or is the cell meant for its definition."""
        return self.exercise == name or self.has_definition(name)

    def has_definition(self, name: str) -> bool:
        """Return whether the text of the cell has a line that defines this function or class."""
        return name in self._defined

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in the cell's code, as far as it can be read; those in comments and strings do not count."""
        words = _WORD.finditer(self.source[:MAX_CHARACTERS])
        return frozenset(word["name"] for word in words if word["name"])

    @property
    def defines_anything(self) -> bool:
        """Return whether the cell defines any function or class."""
        return bool(self._defined)

    @cached_property
    def _defined(self) -> frozenset[str]:
        return frozenset(_DEFINITION.findall(self.source[:MAX_CHARACTERS]))


def parse(content: bytes | Damaged) -> RawNotebook | Damaged:
    """The cells of a notebook, or why there are none."""
    if isinstance(content, Damaged):
        return content
    try:
        notebook = _decoded(content.removeprefix(codecs.BOM_UTF8)).notebook
    except msgspec.ValidationError as error:
        return Damaged(f"The file is JSON but not a Jupyter notebook: {error}. Save it from Jupyter again.")
    except RecursionError:
        return Damaged("The file is nested too deeply to be a notebook. Save it from Jupyter again.")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Damaged("The file is not a notebook: its content is not JSON. Save it from Jupyter again.")
    if notebook.nbformat != 4:
        return Damaged(
            f"The notebook has format {str(notebook.nbformat)[:9]}; format 4 is needed. Save it from Jupyter again."
        )
    if not notebook.cells:
        return Damaged("The notebook has no cells.")
    if len(notebook.cells) > MAX_CELLS:
        return Damaged(
            f"The notebook has {len(notebook.cells)} cells, more than {MAX_CELLS}. Delete those that you do not need."
        )
    lines = sum(cell.text.count("\n") for cell in notebook.cells)
    if lines > MAX_LINES:
        return Damaged(f"The notebook has {lines} lines, more than {MAX_LINES}. Delete those that you do not need.")
    return notebook


def _decoded(content: bytes) -> _NotebookFile:
    try:
        return msgspec.json.decode(content, type=_NotebookFile)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(repaired(content), type=_NotebookFile)


def cell_name(number: int, grade_id: str) -> str:
    """A cell's name in reports: its grade_id, or its position in the notebook, counted from 1."""
    return printable(grade_id[:_MAX_NAME]) or f"number {number}"


def printable(name: str) -> str:
    """A name that a stranger chose, made printable: it may hold control codes or not be valid text at all."""
    if name.isascii() and name.isprintable():
        return name
    return "".join(character if is_visible(character) else "\N{REPLACEMENT CHARACTER}" for character in name)


def printable_lines(text: str) -> str:
    """Anyone's text, made printable line by line: XML, JSON and terminals can hold every character that is left."""
    return "\n".join(map(printable, text.split("\n")))


def is_visible(character: str) -> bool:
    """Whether a character shows: controls and joiners do not, nor do those that Unicode calls ignorable."""
    return character.isprintable() and not _INVISIBLE.fullmatch(character)


def joined(source: Any) -> str:
    """A cell's text, which in nbformat is a string or a list of lines."""
    return source if isinstance(source, str) else "".join(source)

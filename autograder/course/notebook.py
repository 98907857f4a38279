"""A submitted notebook, decoded as untrusted data: names, points and locked cells may all have been changed.

Notebooks of nbformat 4 are accepted. Invalid JSON that other programs accept is repaired: `NaN`, half of a surrogate
pair, bytes that are not UTF-8.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import msgspec

MAX_BYTES = 16 << 20
"""Most bytes of a notebook, without its outputs and pictures."""
MOST_PICTURES = 12 << 20
"""Most base64 bytes of all inline pictures and attachments of a notebook together; the rest is cut off."""
CUT = b"!"
"""Marks the end of a picture that was cut off; base64 never contains this character."""
MAX_CHARACTERS = 200_000
"""Most characters of a cell that is executed. Only this many are searched for definitions."""
MAX_CELLS = 2_000
MAX_LINES = 1_000_000
"""Most lines in all cells together. Each line takes at least 60 bytes of memory when the notebook is written."""
MAX_MODULES = 50
"""Most imported modules that are listed for a cell."""
_MAX_NAME = 100
_MAX_FRAGMENTS = 100_000
"""Most cells that are decoded to find out how many there are."""
_MAX_REPAIRED = MAX_BYTES + MOST_PICTURES
"""Most bytes of a file with invalid JSON that is repaired. Repairing takes up to 10 seconds."""
_AGAIN = "Save it from Jupyter again."
CLEAR = "Clear the outputs (Kernel, Restart and Clear Outputs) and save the notebook again."
_FEWER = "Delete those that you do not need."

# Both match each character only once in any text: Python's tokenizer takes hours on a string that never ends.
# Repeated groups are atomic, `(?>...)`, because before Python 3.11.5 a possessive group, `(...)*+`, keeps what its
# last, failed repetition consumed.
_WORD = re.compile(
    r"""\#[^\n]*+
    | '''(?>[^'\\]|\\.|'(?!''))*+(?:''')? | "{3}(?>[^"\\]|\\.|"(?!""))*+(?:"{3})?
    | '(?>[^'\\\n]|\\.)*+'? | "(?>[^"\\\n]|\\.)*+"?
    | \d\w*+ | (?P<name>\w++)""",
    re.S | re.X,
)
_JSON_TOKEN = re.compile(rb'"[^"\\]*+(?:(?>\\.[^"\\]*+))*+"?|-?Infinity|NaN', re.S)
_INVALID_IN_STRING = re.compile(
    rb"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(\\u[dD][89a-fA-F]\w\w)|\\.|([\x00-\x1f])", re.S
)
_PICTURE = re.compile(rb'(;base64,|"(?=[A-Za-z0-9+/=]{100}))([A-Za-z0-9+/=]*+)')
# No \s: it matches line ends too, and searching a cell of empty lines would take hours.
_DEFINITION = re.compile(r"^[ \t]*(?:async def|def|class)[ \t]+(\w+)", re.M)
_IMPORT = re.compile(r"^[ \t]*+(?:from[ \t]++([\w.]++)[ \t]++import\b|import[ \t]++([\w., \t]++))", re.M)

# The Default_Ignorable_Code_Points that Python considers printable: fillers and variation selectors.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"  #
)

_T = TypeVar("_T")
_N = TypeVar("_N")


class UnreadableNotebook(msgspec.Struct, frozen=True):
    """Returned instead of a notebook that cannot be graded."""

    message: str
    """The reason, and what the student can do, in sentences."""

    def __str__(self) -> str:
        return self.message


class AutograderMetadata(msgspec.Struct, frozen=True):
    """The entries that the autograder itself writes into a cell's metadata."""

    training: bool = False
    """True if the cell trains a model; grading does not execute it."""
    added_to: str = ""
    """Name of the locked cell to which a student added the lines of this cell; empty for other cells."""
    changed: bool = False
    """True if a student changed lines of this locked cell."""


class NbgraderMetadata(msgspec.Struct, frozen=True):
    """The entries that nbgrader writes into a cell's metadata. Of a submission's, only the grade_id is used."""

    grade_id: str = ""
    grade: bool = False
    solution: bool = False
    locked: bool = False
    points: int | float = 0


class _Named(msgspec.Struct):
    grade_id: str = ""


class RawMetadata(msgspec.Struct):
    """A cell's metadata. Only the name from nbgrader and the autograder's own entries are decoded."""

    nbgrader: msgspec.Raw = msgspec.Raw(b"null")
    autograder: msgspec.Raw = msgspec.Raw(b"null")


class RawCell(msgspec.Struct):
    """A notebook's cell as its JSON contains it, in nbformat 4. `cell_type` may be any text."""

    cell_type: str
    source: str | list[str] | None = ""
    metadata: RawMetadata | None = None
    id: msgspec.Raw = msgspec.Raw(b'""')
    attachments: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def text(self) -> str:
        """The cell's source as one string."""
        return joined(self.source or "")

    @property
    def grade_id(self) -> str:
        """The cell's name in nbgrader; empty if it has none."""
        return _decode(self.metadata.nbgrader, _Named()).grade_id if self.metadata else ""

    @property
    def cell_id(self) -> str:
        """The cell's id in nbformat, which programs may change; empty if it has none."""
        return _decode(self.id, "")

    @property
    def nbgrader(self) -> NbgraderMetadata:
        """nbgrader's entries in the metadata."""
        return _decode(self.metadata.nbgrader, NbgraderMetadata()) if self.metadata else NbgraderMetadata()

    @property
    def autograder(self) -> AutograderMetadata:
        """The autograder's own entries in the metadata."""
        return _decode(self.metadata.autograder, AutograderMetadata()) if self.metadata else AutograderMetadata()


class RawNotebook(msgspec.Struct):
    """The parts of a notebook in nbformat 4 that grading needs."""

    nbformat: int
    cells: list[RawCell]


class _KeptCell(msgspec.Struct):
    """The parts of a cell that are kept when a file is read. The texts are not decoded, which saves memory."""

    cell_type: msgspec.Raw
    source: msgspec.Raw = msgspec.Raw(b'""')
    metadata: RawMetadata | None = None
    id: msgspec.Raw = msgspec.Raw(b'""')
    attachments: msgspec.Raw = msgspec.Raw(b"null")


class _KeptNotebook(msgspec.Struct):
    nbformat: msgspec.Raw
    cells: list[_KeptCell]


@dataclass(frozen=True)
class CodeCell:
    """A code cell of a submission, to be executed."""

    name: str
    source: str
    exercise: str | None
    """The exercise whose solution cell this is; None for any other cell."""
    only_shows: bool = False
    """True if the cell is unchanged since the release and only displays results of other cells."""
    is_ours: bool = False
    """True if the cell's text is the instructor's, not the student's."""
    checked: tuple[str, ...] = ()
    """The exercises whose check cells are between this cell and the previous executed cell."""
    added_to: str = ""
    """Name of the locked cell to which a student added these lines; empty for other cells."""
    is_stub: bool = False
    """True if the cell is a stub that the student left unchanged."""
    was_changed: bool = False
    """True if a student changed lines of this locked cell."""

    def defines(self, name: str) -> bool:
        """Return whether the cell defines a function or class of this name, or is the solution cell for it."""
        return self.exercise == name or name in self.definitions

    @cached_property
    def definitions(self) -> frozenset[str]:
        """The names of the functions and classes that the cell defines."""
        return definitions(self.source)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names in the first MAX_CHARACTERS of the code, except in comments and strings."""
        words = _WORD.finditer(self.source[:MAX_CHARACTERS])
        return frozenset(word["name"] for word in words if word["name"])

    @property
    def imported_modules(self) -> list[str]:
        """The modules that the cell imports, by `import` and `from` at the beginning of a line; at most MAX_MODULES."""
        imports = _IMPORT.findall(self.source[:MAX_CHARACTERS])
        words = [named.split() for module, modules in imports for named in (module, *modules.split(","))]
        names = dict.fromkeys(word[0] for word in words if word and len(word[0]) <= _MAX_NAME)
        return list(names)[:MAX_MODULES]


def definitions(code: str) -> frozenset[str]:
    """Return the names of the functions and classes that code defines. The code need not be valid Python."""
    return frozenset(_DEFINITION.findall(code[:MAX_CHARACTERS]))


def without_outputs(content: bytes | bytearray) -> bytes | UnreadableNotebook:
    """Return a notebook's JSON without outputs and other values that grading does not need; these may have any size.

    Pictures beyond MOST_PICTURES are cut off. If the notebook cannot be graded, return the reason.
    content: the JSON of a whole file.
    """
    if content.count(b"cell_type") > _MAX_FRAGMENTS:
        return UnreadableNotebook(f"The notebook has more than {MAX_CELLS} cells. {_FEWER}")
    notebook = _decoded(content, _KeptNotebook)
    if isinstance(notebook, UnreadableNotebook):
        return notebook
    left = MOST_PICTURES

    def cut(match: re.Match[bytes]) -> bytes:
        nonlocal left
        picture = match[2][:left]
        left -= len(picture)
        return match[0] if picture == match[2] else match[1] + picture + CUT

    kept = _PICTURE.sub(cut, msgspec.json.encode(notebook))
    if len(kept) - (MOST_PICTURES - left) > MAX_BYTES:
        return UnreadableNotebook(
            f"The notebook has {len(kept) / 2**20:.0f} MB outside the outputs, more than {MAX_BYTES >> 20} MB. Delete "
            "what is not needed, such as long data in a cell, and save the notebook again."
        )
    return kept


def parse(content: bytes | UnreadableNotebook) -> RawNotebook | UnreadableNotebook:
    """Decode a notebook's JSON; if the notebook cannot be graded, return the reason.

    content: the JSON; an UnreadableNotebook is returned unchanged.
    """
    notebook = content if isinstance(content, UnreadableNotebook) else _decoded(content, RawNotebook)
    if isinstance(notebook, RawNotebook) and (problem := _problem(notebook)):
        return UnreadableNotebook(problem)
    return notebook


def _decoded(content: bytes | bytearray, kind: type[_N]) -> _N | UnreadableNotebook:
    """Decode a notebook's JSON as this type; if that is impossible, return the reason."""
    try:
        is_marked = content.startswith(codecs.BOM_UTF8)
        return _decode_notebook(content[len(codecs.BOM_UTF8) :] if is_marked else content, kind)
    except msgspec.ValidationError as error:
        problem = f"The file is JSON but not a Jupyter notebook: {error}. {_AGAIN}"
    except RecursionError:
        problem = f"The file is nested too deeply to be a notebook. {_AGAIN}"
    except (msgspec.DecodeError, UnicodeDecodeError):
        advice = _AGAIN if len(content) <= _MAX_REPAIRED else CLEAR
        problem = f"The file is not a notebook: its content is not JSON. {advice}"
    return UnreadableNotebook(problem)


def _problem(notebook: RawNotebook) -> str:
    """Return the reason why a notebook cannot be graded; empty if it can."""
    cells, lines = len(notebook.cells), sum(cell.text.count("\n") for cell in notebook.cells)
    if notebook.nbformat != 4:
        return f"The notebook has format {str(notebook.nbformat)[:9]}; format 4 is needed. {_AGAIN}"
    if not cells:
        return "The notebook has no cells."
    if cells > MAX_CELLS:
        return f"The notebook has {cells} cells, more than {MAX_CELLS}. {_FEWER}"
    return f"The notebook has {lines} lines, more than {MAX_LINES}. {_FEWER}" if lines > MAX_LINES else ""


def _decode_notebook(content: bytes | bytearray, kind: type[_N]) -> _N:
    """Decode a notebook's JSON; raises msgspec.DecodeError, UnicodeDecodeError and RecursionError."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        if len(content) > _MAX_REPAIRED:
            raise
        return msgspec.json.decode(_repaired(content), type=kind)


def _repaired(content: bytes | bytearray) -> bytes:
    """Repair invalid JSON: replace NaN and Infinity by `null`, and bytes that are not UTF-8 by U+FFFD.

    Line ends and other control characters within strings are escaped. Takes time linear in the length.
    """

    def token(match: re.Match[bytes]) -> bytes:
        return _INVALID_IN_STRING.sub(character, match[0]) if match[0].startswith(b'"') else b"null"

    def character(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return b"\\ufffd"
        return b"\\u%04x" % match[2][0] if match[2] else match[0]

    return _JSON_TOKEN.sub(token, content.decode("utf-8", "replace").encode())


def _decode(value: msgspec.Raw, default: _T) -> _T:
    """Decode a JSON value; return `default` if its type is not that of `default`."""
    try:
        return msgspec.json.decode(value, type=type(default))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return default


def cell_name(number: int, grade_id: str) -> str:
    """Return a cell's name for reports: its grade_id, or its position in the notebook counted from 1."""
    return printable(grade_id[:_MAX_NAME]) or f"number {number}"


def printable(name: str) -> str:
    """Return a student's text with control, invisible and invalid characters replaced by U+FFFD."""
    if name.isascii() and name.isprintable():
        return name
    return "".join(character if is_visible(character) else "\N{REPLACEMENT CHARACTER}" for character in name)


def printable_lines(text: str) -> str:
    """Return a text with each line made `printable`, so that XML, JSON and terminals accept it."""
    return "\n".join(map(printable, text.split("\n")))


def list_names(names: Sequence[str], most: int = 20) -> str:
    """Return the first names, printable and separated by commas, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(printable(name[:100]) for name in names[:most]) + more


def is_visible(character: str) -> bool:
    """Return whether a character is displayed. Control codes, joiners and ignorable characters are not."""
    return character.isprintable() and not _INVISIBLE.fullmatch(character)


def joined(source: Any) -> str:
    """Return a cell's text as one string. source: a string or a list of lines; nbformat stores either."""
    return source if isinstance(source, str) else "".join(source)

"""A table of people, as an instructor, a spreadsheet, Canvas or Moodle saves one: its encoding, separator and lines."""

import codecs
import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError

_SEPARATORS = (",", ";", "\t")
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""What a file begins with, and the encoding that this tells."""
_SAVE_AS = "Save it as `CSV UTF-8`, or with UTF-8 as its encoding."


class BadRoster(UserError):
    """The roster cannot be used; `str()` says why and what to do."""


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    number: int
    """Where it ends in the file."""
    values: Mapping[str, str]
    """By column, without the spaces around them."""
    is_crowded: bool = False
    """Whether there are more of them than columns."""


@dataclass(frozen=True)
class RosterFile:
    """The table in a file."""

    header: tuple[str, ...]
    lines: tuple[Line, ...]
    """Those that are not empty."""
    encoding: str
    separator: str


def read(path: Path, known: Iterable[str], plain: Callable[[str], str] = str.lower) -> RosterFile:
    """The table at a path, with commas, semicolons or tabs between its values.

    known: columns that such tables have, as `plain` makes them: what separates most of these is the separator.
    Raises BadRoster.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadRoster(f"The roster {path} cannot be read: {error.strerror}.") from None
    text, encoding = _decoded(path, content)
    wanted = set(known)
    try:
        separator = max(_SEPARATORS, key=lambda one: _likeness(map(plain, _header(text, one)), wanted))
        header = _header(text, separator)
        lines = tuple(_lines(text, separator, header))
    except csv.Error as error:
        raise BadRoster(f"The roster {path} is not a CSV file: {error}.") from None
    return RosterFile(header, lines, encoding, separator)


def _decoded(path: Path, content: bytes) -> tuple[str, str]:
    """The file's text, and its encoding. What is neither UTF-8 nor marked is refused: a guess would spoil names."""
    mark = next((mark for mark in _MARKS if content.startswith(mark)), b"")
    encoding = _MARKS.get(mark, "utf-8")
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        looks = "not in UTF-8, perhaps in Latin-1" if not mark else f"damaged: it begins as {encoding.upper()} does"
        raise BadRoster(f"The roster {path} is {looks} (line {line}). {_SAVE_AS}") from None
    if "\0" in text:
        raise BadRoster(f"The roster {path} is no text, or in UTF-16 without its mark. {_SAVE_AS}")
    return text, encoding.upper()


def _header(text: str, separator: str) -> tuple[str, ...]:
    table = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    first = next((row for row in table if any(map(str.strip, row))), [])
    return tuple(map(str.strip, first))


def _likeness(header: Iterable[str], known: set[str]) -> tuple[int, int]:
    words = list(header)
    return len(known.intersection(words)), len(words)


def _lines(text: str, separator: str, header: tuple[str, ...]) -> Iterable[Line]:
    table = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    is_header = True
    for row in table:
        values = [value.strip() for value in row]
        if not any(values):
            continue
        if is_header:
            is_header = False
            continue
        is_crowded = any(values[len(header) :])
        values += [""] * (len(header) - len(values))
        # Of two columns with one name the first is taken.
        yield Line(table.line_num, dict(reversed(list(zip(header, values, strict=False)))), is_crowded)

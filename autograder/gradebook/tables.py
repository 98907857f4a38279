"""Tables of people and points: reading those of instructors and platforms, and writing those for spreadsheets.

Header words in English, German, French, Spanish and Portuguese are each read as their English word. Written tables
round points, quote texts, and defuse formulas.
"""

import codecs
import csv
import io
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from .. import UserError

_SEPARATORS = (",", ";", "\t")
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""Encodings by the bytes with which a file begins."""
_SAVE_AS = "Save it as `CSV UTF-8`, or with UTF-8 as its encoding."

_WORDS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("roster_words.toml").read_text(encoding="utf-8"))
"""Words of other languages for each English word."""
_WORKSHEET = {"maximum grade", "grade can be changed", "last modified (submission)", "last modified (grade)"}
"""Columns that only Moodle's grading worksheet has."""


class BadTable(UserError):
    """A file is no table that can be used; `str()` says why and what to do."""


class BadRoster(BadTable):
    """The roster cannot be used; `str()` says why and what to do."""


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    number: int
    """Number of the file's line in which it ends."""
    values: Mapping[str, str]
    """Values by column, without the spaces around them."""
    is_crowded: bool
    """True if there are more values than columns."""


@dataclass(frozen=True)
class RosterTable:
    """The table in a file: header, lines, encoding and separator."""

    header: tuple[str, ...]
    words: Mapping[str, str]
    """English name of each column, in lower case."""
    lines: tuple[Line, ...]
    """The lines that are not empty."""
    encoding: str
    separator: str


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table by column, with column names in lower case. Raises BadTable."""
    lines = read(path, (), {}, "table").lines
    return [{name.lower(): value for name, value in line.values.items()} for line in lines]


def read(path: Path, names: Collection[str], own_words: Mapping[str, str], what: str = "roster") -> RosterTable:
    """Read the table at a path, with commas, semicolons or tabs between its values.

    names: English names of columns that such tables have. own_words: further header words, each with the English one.
    The separator is the one with which the header has the most of these names and words. what: the kind of table, for
    the messages. Raises BadRoster.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadRoster(f"The {what} {path} cannot be read: {error.strerror}.") from None
    text, encoding = _decoded(f"The {what} {path}", content)
    known = {*names, *_ENGLISH, *map(_plain, own_words)}
    try:
        headers = {separator: next(_rows(text, separator), (0, []))[1] for separator in _SEPARATORS}
        separator = max(headers, key=lambda s: (len(known.intersection(map(_plain, headers[s]))), len(headers[s])))
        header = tuple(headers[separator])
        lines = tuple(_line(number, values, header) for number, values in _rows(text, separator))[1:]
    except csv.Error as error:
        raise BadRoster(f"The {what} {path} is not a CSV file: {error}.") from None
    return RosterTable(header, in_english(header, own_words, names), lines, encoding, separator)


def _decoded(file: str, content: bytes) -> tuple[str, str]:
    """Return the file's text and encoding. Reject all other encodings, because a guess would spoil names."""
    mark = next((mark for mark in _MARKS if content.startswith(mark)), b"")
    encoding = _MARKS.get(mark, "utf-8")
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        looks = "not in UTF-8, perhaps in Latin-1" if not mark else f"damaged: it begins as {encoding.upper()} does"
        raise BadRoster(f"{file} is {looks} (line {line}). {_SAVE_AS}") from None
    if "\0" in text:
        raise BadRoster(f"{file} is not a text file, or is in UTF-16 without a byte order mark. {_SAVE_AS}")
    return text, encoding.upper()


def _rows(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, header included, each with the number of the line in which it ends."""
    table = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    for row in table:
        if any(values := [value.strip() for value in row]):
            yield table.line_num, values


def _line(number: int, values: list[str], header: tuple[str, ...]) -> Line:
    is_crowded = any(values[len(header) :])
    values += [""] * (len(header) - len(values))
    # Of two columns with the same name the first is used.
    return Line(number, dict(reversed(list(zip(header, values, strict=False)))), is_crowded)


def _plain(word: str) -> str:
    """Return a header word in lower case, without accents, with single spaces."""
    decomposed = unicodedata.normalize("NFKD", word.replace("\u2019", "'").casefold())
    return " ".join("".join(one for one in decomposed if not unicodedata.combining(one)).split())


_ENGLISH = {_plain(word): english for english, words in _WORDS.items() for word in words}


def in_english(header: Iterable[str], own_words: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the English name of each column of a header, in lower case; an unknown word is its own name.

    own_words: further header words, each with the English one. names: the permitted English names. Raises BadRoster if
    `own_words` has another one.
    """
    allowed = {_plain(name): name for name in (*names, *_WORDS)}
    more = {}
    for word, english in own_words.items():
        if _plain(english) not in allowed:
            raise BadRoster(
                f"[roster.header] in autograder.toml reads `{word}` as `{english}`, which is not a column of a roster. "
                f"There are: {', '.join(sorted(allowed.values()))}."
            )
        more[_plain(word)] = allowed[_plain(english)]
    meanings = _ENGLISH | more
    words = {name: meanings.get(_plain(name)) or name.lower() for name in header}
    is_worksheet = bool(_WORKSHEET & set(words.values()))
    for name, word in words.items():
        if is_worksheet and word == "id":  # German worksheets name the participant's number `ID`
            words[name] = "identifier" if _plain(name) == "id" else "id number"
        elif not is_worksheet and word == "identifier" and _plain(name) != word and "id" not in words.values():
            words[name] = "id"
    return words


# Characters that spreadsheets read as the beginning of a formula, including the wide forms of East Asian scripts.
_BEGINS_FORMULA = tuple("=+-@|%\t\r\uff1d\uff0b\uff0d\uff20")
_AFTER_A_SEPARATOR = re.compile(rf"(?<=[;\t\r\n])(?=[ \n\v\f\"]*[{re.escape(''.join(_BEGINS_FORMULA))}])")
"""Positions within a text at which a spreadsheet that separates at semicolons or tabs would begin a formula."""
_NOT_A_NAME = re.compile(r"-|-?\d+([.,]\d+)?", re.ASCII)
"""A negative number, and the dash that means no value: neither is a formula."""
PLACES = 2
"""Decimal places of points."""
_NOISE = 9
"""Decimal places up to which sums of binary fractions are exact."""


def text(value: object) -> str:
    """Return a value as text for a spreadsheet, with an apostrophe before what could begin a formula.

    A program that reads CSV with commas gets every other text unchanged.
    """
    written = "" if value is None else str(value)
    begins = "'" if written.lstrip(" \n\v\f").startswith(_BEGINS_FORMULA) else ""
    return begins + _AFTER_A_SEPARATOR.sub("'", written)


def value(given: str) -> str:
    """Return a value from another program's table as text for a spreadsheet, as `text` does; keep numbers unchanged."""
    return given if _NOT_A_NAME.fullmatch(given) else text(given)


def rounded(number: float, places: int) -> float:
    """Round a number, halves up: to two places, 1.005 is 1.01 and 29.740000000000002 is 29.74. Never return -0."""
    return float(Decimal(repr(round(number, _NOISE))).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)) + 0.0


def number(points: float) -> str:
    """Return points in two decimal places at most, halves rounded up: 29.740000000000002 is 29.74, and 31.0 is 31."""
    return f"{rounded(points, PLACES):.{PLACES}f}".rstrip("0").rstrip(".")


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """Return the rows as CSV with commas, for a file in UTF-8."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()

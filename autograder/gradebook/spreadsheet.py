"""What the kit writes for spreadsheets and learning platforms: quoted, and no name is a formula."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from .rounding import rounded

# What spreadsheets take for the beginning of a formula, including the wide forms of East Asian scripts.
_BEGINS_FORMULA = tuple("=+-@|%\t\r\uff1d\uff0b\uff0d\uff20")
_AFTER_A_SEPARATOR = re.compile(rf"(?<=[;\t\r\n])(?=[ \n\v\f\"]*[{re.escape(''.join(_BEGINS_FORMULA))}])")
"""Within a text: a spreadsheet that separates at semicolons or tabs makes a cell of what follows, quoted or not."""
_NOT_A_NAME = re.compile(r"-|-?\d+([.,]\d+)?", re.ASCII)
"""A negative number, and the dash that stands for no value: neither is a formula."""
PLACES = 2
"""Of points."""


def text(value: object) -> str:
    """The value as text for a spreadsheet, with an apostrophe before what could begin a formula.

    Read as CSV with commas, every other text comes back as it is.
    """
    written = "" if value is None else str(value)
    begins = "'" if written.lstrip(" \n\v\f").startswith(_BEGINS_FORMULA) else ""
    return begins + _AFTER_A_SEPARATOR.sub("'", written)


def value(given: str) -> str:
    """A value of another program's table, to be written again: as `text`, but numbers stay numbers."""
    return given if _NOT_A_NAME.fullmatch(given) else text(given)


def number(points: float) -> str:
    """Points in two decimal places at most, a half rounded up: 29.740000000000002 is 29.74, and 31.0 is 31."""
    return f"{rounded(points, PLACES):.{PLACES}f}".rstrip("0").rstrip(".")


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """The rows as CSV with commas, for a file in UTF-8."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()

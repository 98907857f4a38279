"""What the kit writes for spreadsheets and learning platforms: quoted, rounded, and no name is a formula."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal

# What spreadsheets take for the beginning of a formula, including the wide forms of East Asian scripts.
_BEGINS_FORMULA = tuple("=+-@|%\t\r\uff1d\uff0b\uff0d\uff20")
_NOT_A_NAME = re.compile(r"-|-?\d+([.,]\d+)?", re.ASCII)
"""A negative number, and the dash that stands for no value: neither is a formula."""
_PLACES = Decimal("0.01")
_NOISE = 9
"""In decimal places: what binary fractions add to a sum, and where a half is to be seen."""


def text(value: object) -> str:
    """The value as text for a spreadsheet, with an apostrophe before what could begin a formula."""
    written = "" if value is None else str(value)
    return f"'{written}" if written.lstrip(" \n\v\f").startswith(_BEGINS_FORMULA) else written


def value(given: str) -> str:
    """A value of another program's table, to be written again: as `text`, but numbers stay numbers."""
    return given if _NOT_A_NAME.fullmatch(given) else text(given)


def number(points: float) -> str:
    """Points in two decimal places at most, a half rounded up: 29.740000000000002 is 29.74, and 31.0 is 31."""
    rounded = Decimal(repr(round(points, _NOISE))).quantize(_PLACES, ROUND_HALF_UP) + 0  # of -0 makes 0
    return f"{rounded:f}".rstrip("0").rstrip(".")


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """The rows as CSV with commas, for a file in UTF-8."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()

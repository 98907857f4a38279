"""Formats values for spreadsheets and learning platforms: rounds points, quotes texts, and defuses formulas."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from ..errors import UserError

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


class BadTable(UserError):
    """Raised if a file is no table; `str()` says why."""


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column, with column names in lower case and without spaces around the values.

    Values may be separated by commas, semicolons or tabs. Raises BadTable.
    """
    try:
        written = path.read_text(encoding="utf-8-sig")
        separator = max(",;\t", key=written.partition("\n")[0].count)
        table = csv.DictReader(io.StringIO(written, newline=""), delimiter=separator, restval="", strict=True)
        return [{str(name).strip().lower(): str(value).strip() for name, value in row.items()} for row in table]
    except OSError as error:
        raise BadTable(f"The table {path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadTable(f"The table {path} is not a CSV file in UTF-8: {error}.") from None


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

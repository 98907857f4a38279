"""Writes the class report: report.html to read, report.csv for a spreadsheet, report.json for programs."""

from pathlib import Path

import msgspec

from .. import output_files
from .page import page
from .shape import ClassReport
from .table import table

FOLDER = "reports"
"""In the course's folder."""
PAGE, TABLE, DATA = ".html", ".csv", ".json"
_OF_ITS_OWNER, _FOR_ALL = 0o600, 0o644


def place(folder: Path, *, is_anonymous: bool) -> Path:
    """Return the page's path in a folder; a report without names does not replace the one with them."""
    return folder / (f"anonymous{PAGE}" if is_anonymous else f"report{PAGE}")


def check(place: Path) -> None:
    """Raise NotWritable if one of the three files cannot be written."""
    for path in (place, place.with_suffix(TABLE), place.with_suffix(DATA)):
        output_files.check(path, makes_folder=True)


def write(report: ClassReport, place: Path) -> list[Path]:
    """Writes the page at `place`, and the table and the data beside it; returns the three paths. Raises NotWritable."""
    mode = _FOR_ALL if report.is_anonymous else _OF_ITS_OWNER
    contents = {
        place: page(report).encode(),
        place.with_suffix(TABLE): table(report).encode(),
        place.with_suffix(DATA): msgspec.json.format(msgspec.json.encode(report)) + b"\n",
    }
    output_files.write(contents, mode, makes_folder=True)
    return list(contents)

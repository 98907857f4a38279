"""Writes the class report: report.html to read, report.csv for a spreadsheet, report.json for programs."""

from pathlib import Path

import msgspec

from ..classroom import whole_files
from .page import page
from .shape import ClassReport
from .table import table

FOLDER = "reports"
"""In the course's folder."""
PAGE = ".html"
_OF_ITS_OWNER, _FOR_ALL = 0o600, 0o644


def default_place(root: Path, report: ClassReport) -> Path:
    """Where the page goes if nothing else is asked for; one without names does not replace the one with them."""
    return root / FOLDER / report.unit / (f"anonymous{PAGE}" if report.is_anonymous else f"report{PAGE}")


def write(report: ClassReport, place: Path) -> list[Path]:
    """Writes the page at `place`, and the table and the data beside it; returns the three paths. Raises OSError."""
    mode = _FOR_ALL if report.is_anonymous else _OF_ITS_OWNER
    contents = {
        place: page(report).encode(),
        place.with_suffix(".csv"): table(report).encode(),
        place.with_suffix(".json"): msgspec.json.format(msgspec.json.encode(report)) + b"\n",
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        whole_files.write(path, content, mode)
    return list(contents)

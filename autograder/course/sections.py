"""The headings of a unit's text: what the unit is called, and the section that each cell stands in."""

import re

import msgspec

from ..notebook import RawNotebook
from . import source

_HEADING = re.compile(r"^(#{1,2})[ \t]+(.+?)[ \t#]*$", re.M)


def title(unit_name: str) -> str:
    """The text's title; the unit's name if it has none."""
    return next((heading for level, heading in _headings(unit_name) if level == 1), unit_name)


def sections(unit_name: str) -> dict[str, str]:
    """The heading above each named cell, by grade_id; empty above the first section."""
    found: dict[str, str] = {}
    section = ""
    for cell in _notebook(unit_name).cells:
        if cell.grade_id:
            found[cell.grade_id] = section
        elif cell.cell_type == "markdown":
            section = ([heading for level, heading in _headings_in(cell.text) if level == 2] or [section])[-1]
    return found


def _headings(unit_name: str) -> list[tuple[int, str]]:
    texts = [cell.text for cell in _notebook(unit_name).cells if cell.cell_type == "markdown"]
    return [heading for text in texts for heading in _headings_in(text)]


def _headings_in(text: str) -> list[tuple[int, str]]:
    return [(len(found[1]), found[2]) for found in _HEADING.finditer(text)]


def _notebook(unit_name: str) -> RawNotebook:
    return msgspec.json.decode(source(unit_name).read_bytes(), type=RawNotebook)

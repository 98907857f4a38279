"""What each exercise and question is worth, and the whole notebook, said in its text before the exercise begins."""

import re
from typing import Any

from nbformat.v4 import new_markdown_cell

_TOLD = re.compile(r"\*\*(Exercise `\w+`: |Question: )?[\d.]+ points?\*\*.*")


def tell(cells: list[Any], exercise: str, points: float) -> None:
    """Says it where the exercise's text begins: in the cell above its own, else in a cell of its own."""
    line = f"**Exercise `{exercise}`: {in_words(points)}**"
    if cells and cells[-1].cell_type == "markdown" and "nbgrader" not in cells[-1].metadata:
        cells[-1].source = below_headings(cells[-1].source, line)
        return
    cells.append(new_markdown_cell(line))
    cells[-1].id = f"points-{exercise}"


def tell_of_question(text: str, points: float) -> str:
    """A written question's text, with its points."""
    return below_headings(text, f"**Question: {in_words(points)}**, given by a person")


def tell_total(cells: list[Any], title: str, by_tests: float, by_hand: float) -> None:
    """Says it at the notebook's top."""
    told = f"**{in_words(by_tests + by_hand)}**"
    if by_hand:
        told += f": {by_tests:g} for code, {by_hand:g} for what you write in words"
    if cells and cells[0].cell_type == "markdown":
        cells[0].source = below_headings(cells[0].source, f"{told}.")
        return
    cells.insert(0, new_markdown_cell(f"{told}."))
    cells[0].id = f"points-{title}"


def tells_points(paragraph: str) -> bool:
    """Whether a paragraph is one of these."""
    return _TOLD.fullmatch(paragraph.strip()) is not None


def in_words(points: float) -> str:
    """`1 point`, `2.5 points`."""
    return f"{points:g} point{'' if points == 1 else 's'}"


def below_headings(text: str, line: str) -> str:
    """The text with a paragraph more, above all but the headings that it begins with."""
    lines, at = text.split("\n"), 0
    while at < len(lines) and (lines[at].startswith("#") or not lines[at].strip()):
        at += 1
    parts = "\n".join(lines[:at]).strip(), line, "\n".join(lines[at:]).strip()
    return "\n\n".join(filter(None, parts))

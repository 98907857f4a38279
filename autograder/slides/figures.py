"""What a cell printed and drew, as it stands on a slide: pictures, tables of numbers, and other text."""

import base64
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

_GRADIENT = re.compile(r", grad_fn=<\w+>")
_TENSOR = re.compile(r"tensor\((\[[^()]*\])(?:,[^()]*(?:\([^()]*\))?)?\)")
_MOST_ROWS, _MOST_COLUMNS = 12, 12
_MOST_LINES = 24
"""Of printed text that a slide shows."""
_PICTURE_LINES = 10.5
"""The least height of a picture, unless it is as wide as the slide with less."""
_WIDTH = 54
"""Of what is shown, in rem; a line of text is 1.82 rem high."""
_LINE = 1.82
_PNG = "image/png"


@dataclass(frozen=True)
class Figure:
    """One thing that a cell shows; one of these three is there."""

    picture: str = ""
    """A PNG in base64."""
    rows: list[list[str]] = field(default_factory=list)
    text: str = ""

    @property
    def height(self) -> float:
        """In lines of a slide's text; a picture takes what is left, but not less than this."""
        if self.picture:
            wide, high = struct.unpack(">II", base64.b64decode(self.picture[:64])[16:24])  # a PNG's size
            return float(min(_PICTURE_LINES, 0.8 + _WIDTH * high / wide / _LINE))
        return 0.8 + (1.15 * len(self.rows) if self.rows else 0.75 * (self.text.count("\n") + 1))

    @property
    def width(self) -> float:
        """In rem; that of a picture is what is left."""
        if self.picture:
            return 0.0
        if self.rows:
            return sum(0.75 * max(map(len, column)) + 1.5 for column in zip(*self.rows, strict=True))
        return min(_WIDTH, 3 + 0.63 * max(map(len, self.text.split("\n"))))


def height(shown: Sequence[Figure]) -> float:
    """Of all of them, in lines of a slide's text: they stand beside each other as far as there is room."""
    rows, room = list[list[float]](), 0.0
    for one in shown:
        if not rows or one.width > room:
            rows.append([])
            room = _WIDTH
        rows[-1].append(one.height)
        room -= one.width + 1.5
    return sum(map(max, rows))


def figures(outputs: Iterable[Any]) -> list[Figure]:
    """What is to be seen of a cell's outputs, in order. Pages that a cell shows, and warnings, are left out."""
    found, printed = list[Figure](), ""
    for one in outputs:
        if one.output_type == "stream":
            printed += one.text if one.name == "stdout" else ""
            continue
        found += _of_text(printed)
        printed = ""
        if _PNG in one.data:
            found.append(Figure(picture=one.data[_PNG].replace("\n", "")))
        elif "text/html" not in one.data:
            found += _of_text(one.data.get("text/plain", ""))
    return found + _of_text(printed)


def _of_text(text: str) -> list[Figure]:
    text = _GRADIENT.sub("", text)
    if not text.strip():
        return []
    if not re.sub(r"[(),\s]", "", _TENSOR.sub("", text)):
        tables = [_rows(found[1]) for found in _TENSOR.finditer(text)]
        if all(tables):
            return [Figure(rows=rows) for rows in tables]
    lines = text.strip("\n").split("\n")
    cut = [*lines[:_MOST_LINES], "…"] if len(lines) > _MOST_LINES else lines
    return [Figure(text="\n".join(cut))]


def _rows(printed: str) -> list[list[str]]:
    """The numbers of a vector or matrix as PyTorch prints it, or of a batch of one; none of what is larger."""
    rows = [[number.strip() for number in row.split(",")] for row in re.findall(r"\[([^\[\]]*)\]", printed)]
    fits = len(rows) <= _MOST_ROWS and all(0 < len(row) <= _MOST_COLUMNS for row in rows)
    return rows if fits and not re.search(r"\]\],|\.\.\.", printed) else []

"""A unit's text in pieces that a slide can hold: paragraphs, formulas, lists and tables, each with its height."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import zip_longest
from math import ceil

from ..formatting.pages import markdown2html

_WIDTH = 82
"""Characters in a line of a slide's text."""
_TABLE_WIDTH = 100
_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t#]*")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]")
_RULE = re.compile(r"\|[\s:|-]+\|?")
_SHORT_CODE = re.compile(r"<code>[^<]{1,24}</code>")
"""Which is not broken at the end of a line."""
_MARKUP = re.compile(r"[*`$|]|\\[a-z]+")


class Kind(StrEnum):
    """What a piece of text is."""

    HEADING = "heading"
    PROSE = "prose"
    FORMULA = "formula"
    LIST = "list"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True)
class Piece:
    """One paragraph, list, table or formula of a text, or a heading."""

    kind: Kind
    source: str
    """As markdown; of a heading its words alone."""
    level: int = 0
    """Of a heading."""

    @cached_property
    def html(self) -> str:
        return _SHORT_CODE.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), markdown2html(self.source))

    @property
    def leads_on(self) -> bool:
        """Whether it announces what comes after it."""
        return self.source.rstrip().endswith((":", ",", " are", " is", " be"))

    @property
    def height(self) -> float:
        """How many lines of a slide it takes, the space below it included."""
        lines = self.source.split("\n")
        match self.kind:
            case Kind.FORMULA:
                return 3.2
            case Kind.TABLE:
                return 0.5 + _height_of_table([line for line in lines if not _RULE.fullmatch(line)])
            case Kind.LIST:
                items = re.split(r"\n(?=[ \t]*(?:[-*+]|\d+[.)])[ \t])", self.source)
                return 0.4 + sum(0.2 + _rows(item, _WIDTH - 4) for item in items)
            case Kind.CODE:
                return 0.8 + 0.8 * len(lines)
        return 0.6 + _rows(self.source, _WIDTH)


def pieces(markdown: str) -> list[Piece]:
    """The pieces of a cell's text, in order."""
    found = list[Piece]()
    for part in _parts(markdown):
        first, _, rest = part.partition("\n")
        if heading := _HEADING.fullmatch(first):
            found.append(Piece(Kind.HEADING, heading[2], len(heading[1])))
            part = rest
        if part.strip():
            found.append(Piece(_kind(part), part.strip("\n")))
    return found


def inline(markdown: str) -> str:
    """A heading's words as HTML. Read as a heading: `1. Scores` by itself would be a list."""
    return re.sub(r"</?h1>", "", markdown2html(f"# {markdown}")).strip()


def _parts(markdown: str) -> list[str]:
    """What empty lines separate, but for those in a block of code or a formula."""
    found, open_with = [""], ""
    for line in markdown.split("\n"):
        for fence in ("```", "$$"):
            if line.count(fence) % 2 and open_with in ("", fence):
                open_with = "" if open_with else fence
        if line.strip() or open_with:
            found[-1] += line + "\n"
        elif found[-1]:
            found.append("")
    return [part.removesuffix("\n") for part in found if part.strip()]


def _kind(part: str) -> Kind:
    if part.startswith("```"):
        return Kind.CODE
    if part.startswith("|"):
        return Kind.TABLE
    if part.lstrip().startswith("$$"):
        return Kind.FORMULA
    return Kind.LIST if _ITEM.match(part) else Kind.PROSE


def _height_of_table(lines: list[str]) -> float:
    """Each column as wide as its longest cell, if there is room; else all are narrowed alike."""
    rows = [[len(_MARKUP.sub("", cell).strip()) + 2 for cell in line.strip("|").split("|")] for line in lines]
    widest = [max(column) for column in zip_longest(*rows, fillvalue=2)]
    narrowed = max(1.0, sum(widest) / _TABLE_WIDTH)
    return sum(0.35 + 0.85 * max(ceil(1.1 * narrowed * cell / most) if narrowed > 1 else 1
                                 for cell, most in zip(row, widest, strict=False)) for row in rows)  # fmt: skip


def _rows(text: str, width: int) -> int:
    return max(1, ceil(len(_MARKUP.sub("", text)) / width))

"""The time budget for formatting one page. Once it is spent, further texts appear unformatted, below an explanation."""

from collections import OrderedDict

from .client import Formatter
from .formatter import Kind, Outcome
from .pictures import elements_of
from .plain_text import LONGEST_CELL, as_it_is, is_short, with_reason

FORMATTED_ON_A_PAGE = 200_000
"""Maximum number of characters that are formatted on a page, including the released cells'."""
_MOST_HTML = 2_000_000
"""Maximum number of characters of HTML from a page's texts: nbconvert parses the whole page again."""
_MOST_ELEMENTS = 20_000
"""Maximum number of elements in a page's HTML: a browser, and nbconvert's parser, take a second for this number."""
_MOST_CACHED = 2000
"""Maximum number of cells whose HTML is cached: the released ones of a unit, and answers that many students give."""
_LONGEST_CACHED = 30_000

_REASONS: dict[Outcome, str] = {
    "too slow": "This cell took too long to format, so it is shown as plain text.",
    "too large": "Formatted, this cell would be too long for the page, so it is shown as plain text.",
    "failed": "This cell could not be formatted, so it is shown as plain text.",
    "unavailable": "Formatting does not work here at the moment, so this cell is shown as plain text.",
}
_LONG = "This cell, or a line of it, is too long to format, so it is shown as plain text."
_SPENT = "This page took too long to format, so this cell is shown as plain text."
_FULL = "This page has too much text to format all of it, so this cell is shown as plain text."


class PageFormatter:
    """Formats the texts of one page after another. Its methods replace nbconvert's filters for students' texts."""

    def __init__(self, formatter: Formatter) -> None:
        self._formatter = formatter
        self._cache: OrderedDict[tuple[Kind, str], str] = OrderedDict()
        self.begin()

    def begin(self) -> None:
        """Begin a new page, with its whole budget."""
        limits = self._formatter.limits
        self._characters = FORMATTED_ON_A_PAGE
        self._html = _MOST_HTML
        self._elements = _MOST_ELEMENTS
        self._cpu_seconds = float(limits.page_cpu_seconds)
        self._wall_seconds = float(limits.page_wall_seconds)

    def markdown(self, source: str) -> str:
        """Return the HTML of a markdown cell or an instructor's comment."""
        html, reason = self._html_of("markdown", source) if len(source) <= LONGEST_CELL else ("", _LONG)
        return with_reason(reason, source) + elements_of(source) if reason else html

    def code(self, source: str) -> str:
        """Return the HTML of a code cell, as Python, regardless of the language that it claims."""
        html, reason = self._html_of("code", source) if is_short(source) else ("", _LONG)
        return with_reason(reason, source) if reason else html

    def raw(self, source: str) -> str:
        """Return the HTML of a raw cell: its text without formatting."""
        return as_it_is(source)

    def _html_of(self, kind: Kind, source: str) -> tuple[str, str]:
        """Return a text's HTML and an empty reason, or nothing and the reason why it is not formatted."""
        self._characters -= len(source)
        if self._characters < 0 or self._html < 0 or self._elements < 0:
            return "", _FULL
        html = self._cache.get((kind, source))
        if html is not None:
            self._cache.move_to_end((kind, source))
        else:
            if self._cpu_seconds <= 0 or self._wall_seconds <= 0:
                return "", _SPENT
            limit = self._formatter.limits.cell_cpu_seconds
            answer = self._formatter.format(
                kind, source, cpu_seconds=min(limit, self._cpu_seconds), wall_seconds=self._wall_seconds
            )
            self._cpu_seconds -= answer.cpu_seconds
            self._wall_seconds -= answer.wall_seconds
            if answer.outcome != "formatted":
                return "", _REASONS[answer.outcome]
            html = answer.html
            if len(html) <= _LONGEST_CACHED:
                self._cache[kind, source] = html
            if len(self._cache) > _MOST_CACHED:
                self._cache.popitem(last=False)
        self._html -= len(html)
        self._elements -= html.count("<")  # counts each element twice, if it is closed
        return (html, "") if self._html >= 0 and self._elements >= 0 else ("", _FULL)

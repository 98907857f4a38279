"""Texts shown as they are, with the reason. Nothing here takes longer than reading the text once."""

from html import escape

LONGEST_CELL = 10_000
"""Maximum number of characters of a cell that is formatted."""
LONGEST_LINE = 500
"""Maximum number of characters of a line in code that is highlighted."""


def as_it_is(source: str) -> str:
    """Return the HTML of a cell's text without any formatting."""
    return f'<div class="highlight"><pre>{escape(source)}</pre></div>'


def with_reason(reason: str, source: str) -> str:
    """Return the HTML of a cell's text without any formatting, below the reason."""
    return f"<p><i>{escape(reason)}</i></p>\n{as_it_is(source)}"


def is_short(code: str) -> bool:
    """Return whether code and its lines are short enough to be highlighted."""
    return len(code) <= LONGEST_CELL and max(map(len, code.split("\n"))) <= LONGEST_LINE

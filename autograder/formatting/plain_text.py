"""Texts shown as they are, and a sentence that says why; nothing here takes longer than reading the text once."""

from html import escape

LONGEST_CELL = 10_000
"""Characters in a cell that is still formatted."""
LONGEST_LINE = 500
"""Characters in a line of code that is still highlighted."""


def as_it_is(source: str) -> str:
    """A cell's text without any formatting."""
    return f'<div class="highlight"><pre>{escape(source)}</pre></div>'


def said(sentence: str, source: str) -> str:
    """A cell's text without any formatting, below a sentence that says why."""
    return f"<p><i>{escape(sentence)}</i></p>\n{as_it_is(source)}"


def is_short(code: str) -> bool:
    """Whether code is highlighted: it and its lines are no longer than anyone reads."""
    return len(code) <= LONGEST_CELL and max(map(len, code.split("\n"))) <= LONGEST_LINE

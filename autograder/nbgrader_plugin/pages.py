"""Cells on the pages that formgrader and feedback show: whatever a student wrote stays text.

A script in an answer would run with the instructor's rights as soon as the instructor reads it, and could change marks.
And the libraries that format markdown and code take time with the square of some texts' lengths, so that one answer
could hold up a class: what is longer than anyone reads is shown as it is.
"""

from html import escape, unescape
from pathlib import Path
from typing import Any

import nbgrader
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from .formulas import mathml

MAX_FORMATTED = 10_000
"""Characters of a cell: at most 0.2 s of computing, where mistune and pygments are at their worst."""
_MAX_LINE = 500
_CODE = Highlight2HTML(pygments_lexer="ipython3")


def templates() -> list[str]:
    """The folders of nbconvert's templates for these pages: ours, and nbgrader's."""
    theirs = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
    return [str(Path(__file__).parent / "templates"), str(theirs)]


def markdown2html(source: str) -> str:
    """A markdown cell, or an instructor's comment, as HTML: nbconvert's filter of this name, for strangers' text."""
    if len(source) > MAX_FORMATTED:
        return as_it_is(source)
    renderer = _TextOnly(escape=True, allow_harmful_protocols=False, exclude_anchor_links=True)
    return str(MarkdownWithMath(renderer=renderer).render(source))


def highlight_code(source: str, language: str | None = None, metadata: Any = None) -> str:
    """A code cell as HTML: nbconvert's filter of this name, for strangers' code."""
    if not _is_short(source):
        return as_it_is(source)
    return str(_CODE(source, language, metadata))


def _is_short(code: str) -> bool:
    return len(code) <= MAX_FORMATTED and max(map(len, code.split("\n"))) <= _MAX_LINE


def as_it_is(source: str) -> str:
    """A cell's text without any formatting."""
    return f'<div class="highlight"><pre>{escape(source)}</pre></div>'


class _TextOnly(IPythonRenderer):
    """No HTML, no script, no picture; formulas as MathML."""

    def text(self, text: str) -> str:
        return escape(unescape(text), quote=False)

    def block_code(self, code: str, info: str | None = None) -> str:
        return str(super().block_code(code, info)) if _is_short(code) else as_it_is(code)

    def inline_math(self, body: str) -> str:
        return mathml(body, "inline")

    def block_math(self, body: str) -> str:
        return mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block")

    def block_mermaidjs(self, code: str) -> str:
        return f"<pre>{escape(code)}</pre>"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # A pasted picture is not among what is marked, and one from elsewhere would tell its owner who reads it.
        return f"<i>[a picture, which is not shown here: {text or escape(url)}]</i>"

"""Markdown on the pages that formgrader and feedback show: whatever a student wrote stays text.

A script in an answer would run with the instructor's rights as soon as the instructor reads it, and could change marks.
"""

from html import escape, unescape
from pathlib import Path

import nbgrader
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from .formulas import mathml


def templates() -> list[str]:
    """The folders of nbconvert's templates for these pages: ours, and nbgrader's."""
    theirs = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
    return [str(Path(__file__).parent / "templates"), str(theirs)]


def markdown2html(source: str) -> str:
    """A markdown cell, or an instructor's comment, as HTML: nbconvert's filter of this name, for strangers' text."""
    renderer = _TextOnly(escape=True, allow_harmful_protocols=False, exclude_anchor_links=True)
    return str(MarkdownWithMath(renderer=renderer).render(source))


class _TextOnly(IPythonRenderer):
    """No HTML, no script, no picture; formulas as MathML."""

    def text(self, text: str) -> str:
        return escape(unescape(text), quote=False)

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

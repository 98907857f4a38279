"""Cells on the pages of formgrader and feedback: whatever a student wrote stays text.

A script in an answer would run with the instructor's rights as soon as the instructor reads it, and could change marks.
And on some texts the libraries that format markdown and code take time quadratic in the length, so that one answer
could hold up a class: what is longer than anyone reads is shown as it is.
"""

import re
import secrets
from html import escape, unescape
from typing import Any

from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from . import pictures
from .allowed_html import highlighted_code, prose
from .formulas import mathml
from .plain_text import LONGEST_CELL, as_it_is, is_short

_CODE = Highlight2HTML(pygments_lexer="ipython3")
_HIGHLIGHTED = dict.fromkeys(("python", "python3", "py", "py3", "ipython", "ipython3"), "python") | {"pycon": "pycon"}
"""pygments' names of a course's languages, by the names that a fence may use; any other is plain text."""


def markdown2html(source: str) -> str:
    """A markdown cell, or an instructor's comment, as HTML: replaces nbconvert's filter for strangers' text."""
    if len(source) > LONGEST_CELL:
        return as_it_is(source)
    renderer = _TextOnly(escape=True, allow_harmful_protocols=False, exclude_anchor_links=True)
    return renderer.filled_in(prose(str(MarkdownWithMath(renderer=renderer).render(source))))


def highlight_code(source: str) -> str:
    """A code cell as HTML: replaces nbconvert's filter for strangers' code."""
    if not is_short(source):
        return as_it_is(source)
    return str(_CODE(source))


class _TextOnly(IPythonRenderer):
    """No HTML, no script, no link, no picture but the notebook's own files; formulas as MathML.

    Formulas, pictures and highlighted code come from the autograder. They have classes and attributes that a
    student's text may not have. So an unguessable placeholder replaces them until the text around them is cleaned.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._made: list[str] = []
        self._stand_in = secrets.token_hex(16)

    def filled_in(self, page: str) -> str:
        """The page with every placeholder replaced by what the kit made."""
        return re.sub(rf"{self._stand_in}-(\d+);", lambda found: self._made[int(found[1])], page)

    def _keep(self, html: str) -> str:
        self._made.append(html)
        return f"{self._stand_in}-{len(self._made) - 1};"

    def text(self, text: str) -> str:
        return escape(unescape(text), quote=False)

    def block_code(self, code: str, info: str | None = None) -> str:
        if not is_short(code):
            return self._keep(as_it_is(code))
        named = (info or "").lower().split(maxsplit=1)
        language = _HIGHLIGHTED.get(named[0]) if named else None
        return self._keep(highlighted_code(str(super().block_code(code, language))))

    def inline_math(self, body: str) -> str:
        return self._keep(mathml(body, "inline"))

    def block_math(self, body: str) -> str:
        return self._keep(mathml(body, "block"))

    def latex_environment(self, name: str, body: str) -> str:
        return self._keep(mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block"))

    def block_mermaidjs(self, code: str) -> str:
        return f"<pre>{escape(code)}</pre>"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        # The reader is signed in, and should see where a student's link leads without being a click away from it.
        return text if text in (escape(url), escape(url.removeprefix("mailto:"))) else f"{text} ({escape(url)})"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # A picture from elsewhere would tell its owner who reads it.
        if own := pictures.element(url, re.sub(rf"{self._stand_in}-\d+;", "", text)):
            return self._keep(own)
        return f"<i>[a picture, which is not shown here: {text or escape(url)}]</i>"

    def task_list_item(self, text: str, checked: bool = False) -> str:
        box = "\N{BALLOT BOX WITH CHECK}" if checked else "\N{BALLOT BOX}"
        return f"<li>{box} {text}</li>\n"

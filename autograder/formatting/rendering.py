"""HTML of text that a student wrote: structure, formulas and highlighted code, but nothing that acts or links.

A script in an answer would run with the instructor's rights, and could change scores. A class or an id is enough to do
harm: formgrader's script treats anything with the class of a button as that button. The libraries that format markdown
and code take time quadratic in the length of some texts, so one answer could hold up a class. Longer texts are
therefore shown as they are.
"""

import re
import secrets
from html import escape, unescape
from typing import Any

import nh3
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.token import STANDARD_TYPES

from . import pictures
from .mathml import mathml
from .plain_text import LONGEST_CELL, as_it_is, is_short

_PROSE = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "i", "del", "code", "pre", "blockquote"),
    *("ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
}
_FOLDED_BOX = re.compile(r"<details><summary>[\w ]+</summary>|</details>")
_prose_cleaner = nh3.Cleaner(tags=_PROSE, attributes={"ol": {"start"}, "th": {"scope"}}, url_schemes=set())
_code_cleaner = nh3.Cleaner(
    tags={"div", "pre", "code", "span"},
    attributes={},
    allowed_classes={"div": {"highlight"}, "span": {name for name in STANDARD_TYPES.values() if name}},
    url_schemes=set(),
)
_highlight = Highlight2HTML(pygments_lexer="ipython3")
_LANGUAGES = dict.fromkeys(("python", "python3", "py", "py3", "ipython", "ipython3"), "python") | {"pycon": "pycon"}
"""pygments' names of a course's languages, by the names that a fence may use; any other is plain text."""


def markdown2html(source: str) -> str:
    """Return the HTML of a markdown cell or an instructor's comment. Replaces nbconvert's filter of this name."""
    if len(source) > LONGEST_CELL:
        return as_it_is(source)
    renderer = _TextOnly(escape=True, allow_harmful_protocols=False, exclude_anchor_links=True)
    return renderer.fill_in(_prose_cleaner.clean(str(MarkdownWithMath(renderer=renderer).render(source))))


def highlight_code(source: str) -> str:
    """Return the HTML of a code cell. Replaces nbconvert's filter of this name."""
    return str(_highlight(source)) if is_short(source) else as_it_is(source)


class _TextOnly(IPythonRenderer):
    """Render markdown without HTML, scripts, links, and pictures other than the notebook's files; formulas as MathML.

    The tags of a folded box are the only HTML that stays.

    Formulas, pictures and highlighted code come from the autograder. They have classes and attributes that a
    student's text may not have. So an unguessable placeholder replaces them until the text around them is cleaned.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._trusted: list[str] = []
        self._placeholder = secrets.token_hex(16)

    def fill_in(self, page: str) -> str:
        """Replace each placeholder by its HTML."""
        return re.sub(rf"{self._placeholder}-(\d+);", lambda match: self._trusted[int(match[1])], page)

    def _trust(self, html: str) -> str:
        self._trusted.append(html)
        return f"{self._placeholder}-{len(self._trusted) - 1};"

    def text(self, text: str) -> str:
        return escape(unescape(text), quote=False)

    def block_html(self, html: str) -> str:
        return html if _FOLDED_BOX.fullmatch(html.strip()) else str(super().block_html(html))

    def block_code(self, code: str, info: str | None = None) -> str:
        if not is_short(code):
            return self._trust(as_it_is(code))
        language = _LANGUAGES.get("".join((info or "").lower().split(maxsplit=1)[:1]))
        return self._trust(_code_cleaner.clean(str(super().block_code(code, language))))

    def inline_math(self, body: str) -> str:
        return self._trust(mathml(body, "inline"))

    def block_math(self, body: str) -> str:
        return self._trust(mathml(body, "block"))

    def latex_environment(self, name: str, body: str) -> str:
        return self._trust(mathml(rf"\begin{{{name}}}{body}\end{{{name}}}", "block"))

    def block_mermaidjs(self, code: str) -> str:
        return f"<pre>{escape(code)}</pre>"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        # The reader is signed in, and should see where a student's link leads without being a click away from it.
        return text if text in (escape(url), escape(url.removeprefix("mailto:"))) else f"{text} ({escape(url)})"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # A picture from elsewhere would tell its owner who reads it.
        if picture := pictures.element(url, re.sub(rf"{self._placeholder}-\d+;", "", text)):
            return self._trust(picture)
        return f"<i>[a picture, which is not shown here: {text or escape(url)}]</i>"

    def table_cell(self, text: str, align: str | None = None, head: bool = False) -> str:
        is_head = head and text.strip()
        return f'<th scope="col">{text}</th>\n' if is_head else f"<td>{text}</td>\n"

    def task_list_item(self, text: str, checked: bool = False) -> str:
        box = "\N{BALLOT BOX WITH CHECK}" if checked else "\N{BALLOT BOX}"
        return f"<li>{box} {text}</li>\n"

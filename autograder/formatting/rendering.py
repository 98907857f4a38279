"""HTML of text that a student wrote: structure, formulas and highlighted code, but nothing that acts or links.

A script in an answer would run with the instructor's rights, and could change scores. A class or an id is enough to do
harm: formgrader's script treats anything with the class of a button as that button. The libraries that format markdown
and code take time quadratic in the length of some texts, so one answer could hold up a class. Longer texts are
therefore shown as they are.

LaTeX becomes MathML, which browsers show without a script. Only MathML Core's elements and attributes that say how a
formula looks are kept: https://www.w3.org/TR/mathml-core/. Those that act or link are left out (`class`, `id`,
`style`, `href`, `data-*`, `tabindex`, events, `maction`, `annotation-xml`). The lines and columns of tables come from
MathML 3, for browsers that still draw them.

Pictures in text cells are files next to the notebook, under names that no student chose.
"""

import base64
import re
import secrets
from html import escape, unescape
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import tostring

import nh3
from latex2mathml.converter import convert_to_element
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.token import STANDARD_TYPES

LONGEST_FORMULA = 2000
_DEFINITIONS = re.compile(r"\\(\w*def|\w*command|let)(?![a-zA-Z])")
"""Commands that define commands: two lines of them can expand to any length."""
MATHML_ELEMENTS = {
    *("math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "ms", "mfrac", "msqrt", "mroot", "mstyle", "merror"),
    *("mpadded", "mphantom", "msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts"),
    *("mprescripts", "mtable", "mtr", "mtd"),
}

MATHML_ATTRIBUTES = {
    *("xmlns", "display", "mathvariant", "form", "scriptlevel", "mathcolor", "mathbackground", "displaystyle"),
    *("width", "height", "depth", "voffset", "lspace", "rspace", "minsize", "maxsize", "linethickness"),
    *("stretchy", "symmetric", "fence", "separator", "largeop", "movablelimits", "accent", "accentunder"),
    *("columnspan", "rowspan", "columnalign", "columnspacing", "rowspacing", "columnlines", "rowlines"),
}
"""Attributes that say how a formula looks. Browsers ignore a value that an attribute cannot have."""
LONGEST_CELL = 10_000
"""Maximum number of characters of a cell that is formatted."""
LONGEST_LINE = 500
"""Maximum number of characters of a line in code that is highlighted."""


def mathml(latex: str, display: str) -> str:
    """Return a formula as MathML, or its text in dollars if it cannot be converted.

    latex: what is between the dollars; a student may have written it.
    display: "inline" or "block".
    """
    dollars = "$" if display == "inline" else "$$"
    as_typed = f"<code>{escape(dollars + latex + dollars)}</code>"
    if len(latex) > LONGEST_FORMULA or _DEFINITIONS.search(latex):
        return as_typed
    try:
        formula = convert_to_element(latex, display=display)
    except Exception:  # the converter raises many kinds
        return as_typed
    for element in formula.iter():
        if element.tag not in MATHML_ELEMENTS:
            element.tag = "mrow"
        for name in element.attrib.keys() - MATHML_ATTRIBUTES:
            del element.attrib[name]
        # latex2mathml leaves entities as they are, and so a student's `<` too.
        element.text = element.text and unescape(element.text)
    return tostring(formula, encoding="unicode")


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
        if picture := element(url, re.sub(rf"{self._placeholder}-\d+;", "", text)):
            return self._trust(picture)
        return f"<i>[a picture, which is not shown here: {text or escape(url)}]</i>"

    def table_cell(self, text: str, align: str | None = None, head: bool = False) -> str:
        is_head = head and text.strip()
        return f'<th scope="col">{text}</th>\n' if is_head else f"<td>{text}</td>\n"

    def task_list_item(self, text: str, checked: bool = False) -> str:
        box = "\N{BALLOT BOX WITH CHECK}" if checked else "\N{BALLOT BOX}"
        return f"<li>{box} {text}</li>\n"


def as_it_is(source: str) -> str:
    """Return the HTML of a cell's text without any formatting."""
    return f'<div class="highlight"><pre>{escape(source)}</pre></div>'


def with_reason(reason: str, source: str) -> str:
    """Return the HTML of a cell's text without any formatting, below the reason."""
    return f"<p><i>{escape(reason)}</i></p>\n{as_it_is(source)}"


def is_short(code: str) -> bool:
    """Return whether code and its lines are short enough to be highlighted."""
    return len(code) <= LONGEST_CELL and max(map(len, code.split("\n"))) <= LONGEST_LINE


LEFT_OUT = "picture-left-out"
"""Text that replaces a picture that is left out."""
SHOWN = re.compile(r"picture-\d{1,3}\.(?:png|jpg|gif|webp)")
"""The name of a file that a browser may show: a raster picture, by its first bytes."""
DOWNLOADED = re.compile(r"attachment-\d{1,3}\.bin")
"""The name of a file with any other content, which is for download only."""
_MEDIA = {"png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
_MOST_EMBEDDED = 4 << 20
"""Maximum number of bytes of pictures within one page."""
_LONGEST_TEXT = 300
_ELEMENT = re.compile(rf'<img alt="([^"]*)" src="({SHOWN.pattern})">')
_LINK = re.compile(rf'<a href="{DOWNLOADED.pattern}" download>([^<]*)</a>')


def element(name: str, text: str) -> str:
    """Return the HTML of a picture, a file or something that was left out; empty for the name of anything else.

    text: the picture's description, as HTML.
    """
    plain = " ".join(unescape(re.sub("<[^>]*>", "", text)).split())[:_LONGEST_TEXT]
    said = escape(plain)
    if SHOWN.fullmatch(name):
        return f'<img alt="{said}" src="{name}">'
    if DOWNLOADED.fullmatch(name):
        return f'<a href="{name}" download>[a file, for download only: {said or name}]</a>'
    if name == LEFT_OUT:
        return f"<i>[a picture is left out here, because the notebook's pictures are too large or too many: {said}]</i>"
    return ""


def elements_of(text: str) -> str:
    """Return the HTML of all pictures that a text names, for a text that is shown as it is."""
    names = dict.fromkeys(re.findall(rf"\((({SHOWN.pattern})|({DOWNLOADED.pattern}))\)", text))
    return "".join(f"<p>{element(name, name)}</p>\n" for name, *_ in names)


def embedded(page: str, folder: Path) -> str:
    """Return a page with its pictures in it, for pages that are sent without the files next to the notebook.

    folder: where the notebook is. Files for download are only named.
    """
    left = _MOST_EMBEDDED

    def picture(match: re.Match[str]) -> str:
        nonlocal left
        text, name = match.groups()
        try:
            content = (folder / name).read_bytes()
        except OSError:
            content = b""
        left -= len(content)
        if not content or left < 0:
            return f"<i>[a picture of your notebook, which is not repeated here: {text}]</i>"
        data = base64.b64encode(content).decode()
        return f'<img alt="{text}" src="data:{_MEDIA[name.rpartition(".")[2]]};base64,{data}">'

    return _LINK.sub(r"<i>\1</i>", _ELEMENT.sub(picture, page))

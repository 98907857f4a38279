"""HTML of students' texts for which no library is needed: texts as they are, and the pictures of text cells.

Pictures are files next to the notebook, under names that no student chose. Nothing here takes longer than reading the
text once.
"""

import base64
import re
from html import escape, unescape
from pathlib import Path

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

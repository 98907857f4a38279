"""Replaces pictures and attachments in a notebook's text cells by files, so that the cells' text stays short.

A picture in a text, as `data:image/png;base64,...`, may be a million characters long. It would crowd out the text
below it in all programs that cut texts.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import msgspec

from ..course.notebook import RawCell, RawNotebook, joined
from ..course.notebook_filter import CUT, kind_of
from ..formatting.fragments import DOWNLOADED, LEFT_OUT, SHOWN

PICTURES = "autograder_pictures"
"""Metadata key under which a cleaned notebook holds its files' contents, by name, until it is written."""
_MOST_FILES = 50
_MOST_PIXELS = 50_000_000
_MOST_NAMES = 4_000
"""Maximum number of strings in a cell's attachments, each of which may be a name."""
_SHORTEST = 200
"""Minimum number of characters of data that are not base64 and become a file."""
_DATA = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80}((?:;[\w.+=-]{1,80}){0,5}),([^\s)\"'<>]*+)")
_ATTACHED = re.compile(r"attachment:([^\s)\"'<>]+)")
_NAMES = rf"{SHOWN.pattern}|{DOWNLOADED.pattern}|{LEFT_OUT}"
_IMG = re.compile(rf"<img\b[^<>]{{0,1000}}?\bsrc\s{{0,9}}=\s{{0,9}}[\"']?({_NAMES})[\"']?[^<>]{{0,1000}}>", re.I)
_ALT = re.compile(r"\balt\s{0,9}=\s{0,9}[\"']([^\"'<>\[\]]{0,300})", re.I)


@dataclass
class _Files:
    """The files of one notebook, by name."""

    contents: dict[str, bytes] = field(default_factory=dict)
    _names: dict[bytes, str] = field(default_factory=dict)

    def add(self, content: bytes | None) -> str:
        """Return the name of the file with this content; LEFT_OUT if the content is not stored."""
        if not content or len(self.contents) >= _MOST_FILES:
            return self._names.get(content or b"", LEFT_OUT)
        if content not in self._names:
            kind, pixels = kind_of(content)
            is_shown = 0 < pixels <= _MOST_PIXELS
            number = len(self.contents) + 1
            self._names[content] = f"picture-{number}.{kind}" if is_shown else f"attachment-{number}.bin"
            self.contents[self._names[content]] = content
        return self._names[content]


def take_out(notebook: RawNotebook) -> dict[str, bytes]:
    """Replace each picture in a notebook's text cells by the name of a file, in place.

    Return the files' contents by name. Take time linear in the length of the texts.
    """
    files = _Files()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            continue
        text = cell.text
        attachments = _attachments(cell)
        if not attachments and "data:" not in text:
            continue
        names = {name: files.add(content) for name, content in attachments.items()}
        text = _DATA.sub(lambda match: _inline(match, files), text)
        text = _ATTACHED.sub(lambda match, names=names: names.get(unquote(match[1]), match[0]), text)  # type: ignore[misc]
        text = _IMG.sub(_as_markdown, text)
        unused = [name for name in names if f"({names[name]})" not in text and f": {names[name]}" not in text]
        cell.source = "\n\n".join([text, *(f"![{_bare(name)}]({names[name]})" for name in unused)])
        cell.attachments = msgspec.Raw(b"null")
    return files.contents


def put(node: Any, contents: dict[str, bytes]) -> None:
    """Store the files of a notebook in its metadata until it is written."""
    if contents:
        node.metadata[PICTURES] = {name: base64.b64encode(content).decode() for name, content in contents.items()}


def pop(node: Any) -> dict[str, bytes]:
    """Take the files of a notebook out of its metadata, and return them."""
    return {name: base64.b64decode(content) for name, content in node.metadata.pop(PICTURES, {}).items()}


def _attachments(cell: RawCell) -> dict[str, bytes | None]:
    """Return the contents of a cell's attachments by name; None for one that was cut."""
    raw = bytes(cell.attachments)
    if raw == b"null" or raw.count(b'"') > 2 * _MOST_NAMES:
        return {}
    try:
        attachments = msgspec.json.decode(raw, type=dict[str, dict[str, str | list[str] | None]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    texts = {name: joined(next(iter(kinds.values()), "") or "") for name, kinds in attachments.items()}
    return {name: _decoded(text) for name, text in texts.items() if name}


def _inline(match: re.Match[str], files: _Files) -> str:
    parameters, data = match.groups()
    if ";base64" in parameters.lower():
        return files.add(_decoded(data))
    return files.add(unquote_to_bytes(data)) if len(data) >= _SHORTEST else match[0]


def _decoded(data: str) -> bytes | None:
    """Decode a text in base64; return None if it was cut or is something else."""
    if data.endswith(CUT.decode()):
        return None
    try:
        content = unquote_to_bytes(data)
        return binascii.a2b_base64(content + b"=" * (-len(content) % 4))
    except (binascii.Error, ValueError):
        return None


def _as_markdown(match: re.Match[str]) -> str:
    alt = _ALT.search(match[0])
    return f"![{alt[1] if alt else ''}]({match[1]})"


def _bare(name: str) -> str:
    """Return an attachment's name, which a student chose, without markup, as the description of a picture."""
    return re.sub(r"[\[\]\\()<>`*_\n]", " ", name)[:300]

"""While a notebook's JSON is read, drop the values that grading does not need, because outputs may have any size.

Every submitted notebook is read in this way. The values that `course.notebook.parse` uses are kept; every other value
becomes `null`. Kept bytes are passed on unchanged, so that invalid JSON stays invalid, except that pictures beyond
MOST_PICTURES are cut off. The filter does not check dropped values, so errors in them do no harm.

`kind_of` finds the format and number of pixels of a picture without decoding it.
"""

import re
import struct

_SOF = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""The markers (SOF0 to SOF15) that precede the height and width in a JPEG file."""
_OF_NOTEBOOK = {b"nbformat", b"cells"}
_OF_CELL = {b"cell_type", b"source", b"metadata", b"id", b"attachments"}
_OF_METADATA = {b"nbgrader", b"autograder"}
MOST_PICTURES = 12 << 20
"""Most base64 bytes of all inline pictures and attachments of a notebook together; the rest is cut off."""
CUT = b"!"
"""Marks the end of a picture that was cut off; base64 never contains this character."""
_MOST_PARTS = 8_000_000
"""Limit for the work on one file: a dropped bracket counts 1, a kept part 4. It takes about 4 seconds to reach.

Usual outputs of 60 MB have thousands of brackets.
"""
_LONGEST_NAME = 100
_QUOTE = ord('"')
# Repeated groups are atomic, see `course.notebook`.
_TEXT = rb'[^"\\]*+(?:(?>\\.[^"\\]*+))*+'
_REST_OF_STRING = re.compile(_TEXT, re.S)
_PLAIN = rb'[^"\[\]{}]*+'
_LEAF = rb'(?:"' + _TEXT + rb'"|\[' + _PLAIN + rb"\]|\{" + _PLAIN + rb"\})"
_TO_BRACKET = re.compile(_PLAIN + rb"(?:(?>" + _LEAF + _PLAIN + rb"))*+", re.S)
_TO_PART = re.compile(rb'[^"\[\]{}:,]*+')
_FLAT = rb'[^"\[\]{}]*+(?:(?>"' + _TEXT + rb'"[^"\[\]{}]*+))*+'
_LINES = re.compile(rb"\[" + _FLAT + rb"\]", re.S)
"""A list of strings, such as a cell's text."""
_ABOUT = re.compile(rb"\{" + _FLAT + rb"\}", re.S)
"""An object without nested brackets, such as nbgrader's metadata of a cell."""
_NAME = re.compile(rb'[\s,]*+"(\w++)"\s*+:')
_PICTURE = b";base64,"
_BASE64 = re.compile(rb"[A-Za-z0-9+/=]*+")


def kind_of(content: bytes) -> tuple[str, int]:
    """Return a raster picture's file ending, such as `png`, and its number of pixels; "" and 0 for other content."""
    if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
        return "png", _product(">II", content[16:24])
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "gif", _product("<HH", content[6:10])
    if content.startswith(b"\xff\xd8\xff"):
        return "jpg", _of_jpeg(content)
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "webp", _of_webp(content)
    return "", 0


def _product(layout: str, sizes: bytes) -> int:
    if len(sizes) < struct.calcsize(layout):
        return 0
    width, height = struct.unpack(layout, sizes)
    return int(width) * int(height)


def _of_jpeg(content: bytes) -> int:
    at = 2
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _SOF:
            return _product(">HH", content[at + 5 : at + 9])
        at += 1 if marker == 0xFF else 2 + int.from_bytes(content[at + 2 : at + 4])
    return 0


def _of_webp(content: bytes) -> int:
    form, data = content[12:16], content[20:30]
    if len(data) < 10:
        return 0
    if form == b"VP8X":
        return (1 + int.from_bytes(data[4:7], "little")) * (1 + int.from_bytes(data[7:10], "little"))
    if form == b"VP8L":
        bits = int.from_bytes(data[1:5], "little")
        return (1 + (bits & 0x3FFF)) * (1 + (bits >> 14 & 0x3FFF))
    return (int.from_bytes(data[6:8], "little") & 0x3FFF) * (int.from_bytes(data[8:10], "little") & 0x3FFF)


class TooManyParts(Exception):
    """Raised if a file has more brackets and strings than the filter may process."""


class WithoutOutputs:
    """Filter that drops outputs and other unneeded values from a notebook's JSON, fed in pieces of any length.

    >>> WithoutOutputs().feed(b'{"cells": [{"source": "1", "outputs": [NaN]}]}')
    b'{"cells": [{"source": "1", "outputs": null}]}'
    """

    def __init__(self) -> None:
        self._depth = 0
        self._parts = 0
        self._left = b""
        """Last bytes of a piece that ended within a string; they are processed with the next piece."""
        self._in_string = False
        self._dropping: int | None = None
        """The depth of brackets at which the dropped value ends; None if no value is being dropped."""
        self._name = b""
        """The last string, if it may be the key of an object."""
        self._unwanted = False
        """True if the next value is to be dropped."""
        self._keys = {1: b"", 3: b""}
        """The key whose value is being read in the notebook (depth 1) and in a cell (depth 3)."""
        self.pictures = 0
        """Bytes of the pictures kept so far, in base64."""
        self._in_picture = False
        self._is_cut = False

    def feed(self, piece: bytes) -> bytes:
        """Process the next piece of JSON and return the part of it that is kept; raises TooManyParts."""
        data = self._left + piece
        self._left = b""
        kept: list[bytes] = []
        position = 0
        while position < len(data):
            if self._in_string:
                position = self._through_string(data, position, kept)
            elif self._dropping is not None:
                position = self._through_dropped(data, position)
            else:
                position = self._through_kept(data, position, kept)
        return b"".join(kept)

    def end(self) -> bytes:
        """Return the last kept bytes, after the last piece: those of an unfinished string."""
        return self._left

    def _count(self) -> None:
        self._parts += 4  # a kept part takes four times as long as a dropped one
        if self._parts > _MOST_PARTS:
            raise TooManyParts

    def _through_string(self, data: bytes, start: int, kept: list[bytes]) -> int:
        """Process a long string to its end, or to the end of the piece; return the position after it."""
        match = _REST_OF_STRING.match(data, start)
        assert match
        end = match.end()
        if end == len(data) or data[end : end + 1] == b"\\":  # the piece ends in the middle of an escape
            end -= _begun(data, start, end) if self._dropping is None else 0
            self._left = data[end:]
            position = len(data)
        else:
            end += 1
            self._in_string = False
            position = end
        if self._dropping is None:
            self._keep(data[start:end], kept)
        elif not self._in_string and self._dropping == self._depth:
            self._dropping = None  # the value was this string
        return position

    def _through_dropped(self, data: bytes, position: int) -> int:
        """Skip a dropped value to its end, or to the end of the piece; return the position after it."""
        depth, parts = self._depth, self._parts
        while depth != self._dropping and parts <= _MOST_PARTS:
            match = _TO_BRACKET.match(data, position)
            assert match
            position = match.end()
            if position == len(data):
                break
            parts += 1
            what = data[position]
            position += 1
            if what == _QUOTE:
                self._in_string = True
                break
            depth += 1 if what in b"[{" else -1
        self._depth, self._parts = depth, parts
        if parts > _MOST_PARTS:
            raise TooManyParts
        if depth == self._dropping:
            self._dropping = None
        return position

    def _through_kept(self, data: bytes, start: int, kept: list[bytes]) -> int:
        """Process the next bracket, string, key, colon or comma that is kept; return the position after it."""
        if match := _NAME.match(data, start):
            self._count()
            self._name = match[1]
            kept.append(match[0])
            self._begin_value()
            return match.end()
        match = _TO_PART.match(data, start)
        assert match
        position = match.end()
        kept.append(data[start:position])
        if position == len(data):
            return position
        self._count()
        what = data[position]
        if what == _QUOTE:
            return self._string(data, position, kept)
        if what in b"[{":
            self._depth += 1
            if self._unwanted:
                self._unwanted = False
                self._dropping = self._depth - 1
                kept.append(b"null")
                return position + 1
            if whole := self._whole(what, data, position):
                self._depth -= 1
                self._keep(whole[0], kept)
                return whole.end()
        elif what in b"]}":
            self._depth -= 1
        kept.append(data[position : position + 1])
        if what == ord(":"):
            self._begin_value()
        else:
            self._unwanted = False
            self._name = b""
        return position + 1

    def _begin_value(self) -> None:
        self._unwanted = self._is_unwanted()
        if self._depth in self._keys:
            self._keys[self._depth] = self._name
        self._name = b""

    def _whole(self, bracket: int, data: bytes, position: int) -> re.Match[bytes] | None:
        """Match a list of strings or a flat object at a position, which is copied as a whole; None without a match."""
        if bracket == ord("["):
            return _LINES.match(data, position)
        is_about = self._depth > 4 and not self._is_attached
        return _ABOUT.match(data, position) if is_about else None

    def _is_unwanted(self) -> bool:
        """Return whether grading ignores the value of the current key. A key with an escape could be any key."""
        if self._depth == 1:
            wanted = self._name in _OF_NOTEBOOK
        elif self._depth == 3:
            wanted = self._name in _OF_CELL
        else:
            wanted = self._depth != 4 or self._name in _OF_METADATA or self._is_attached
        return not wanted and b"\\" not in self._name

    @property
    def _is_attached(self) -> bool:
        """Return whether the parser is inside a cell's attachments."""
        return self._keys[1] == b"cells" and self._keys[3] == b"attachments" and self._depth > 3

    def _keep(self, text: bytes, kept: list[bytes]) -> None:
        """Append the next bytes of strings to `kept`, but cut off pictures once MOST_PICTURES bytes are kept."""
        position = 0
        while self._in_picture or (found := text.find(_PICTURE, position)) >= 0:
            if not self._in_picture:
                kept.append(text[position : found + len(_PICTURE)])
                position = found + len(_PICTURE)
                self._in_picture, self._is_cut = True, False
            match = _BASE64.match(text, position)
            assert match
            left = MOST_PICTURES - self.pictures
            kept.append(match[0][:left])
            self.pictures += len(kept[-1])
            if len(match[0]) > left and not self._is_cut:
                kept.append(CUT)
                self._is_cut = True
            position = match.end()
            if position == len(text):
                return
            self._in_picture = False
        kept.append(text[position:])

    def _string(self, data: bytes, position: int, kept: list[bytes]) -> int:
        """Process a string: a key, a kept value or a dropped value; return the position after it."""
        if self._unwanted:
            self._unwanted = False
            self._dropping = self._depth
            self._in_string = True
            kept.append(b"null")
            return position + 1
        match = _REST_OF_STRING.match(data, position + 1)
        assert match
        end = match.end()
        is_picture = self._is_attached and self._depth > 4
        if end < len(data) and data[end : end + 1] == b'"':
            self._name = data[position + 1 : end]
            kept.append(b'"')
            self._in_picture, self._is_cut = is_picture and end - position > _LONGEST_NAME, False
            self._keep(data[position + 1 : end + 1], kept)
            return end + 1
        if len(data) - position <= _LONGEST_NAME:  # perhaps a key that ends in the next piece
            self._left = data[position:]
        else:
            self._name = b""
            self._in_string = True
            self._in_picture, self._is_cut = is_picture, False
            kept.append(b'"')
            return position + 1
        return len(data)


def _begun(data: bytes, start: int, end: int) -> int:
    """Return the number of bytes at the end of a piece that may be the beginning of `_PICTURE`; 0 if none."""
    tail = data[max(start, end - len(_PICTURE) + 1) : end]
    return next((length for length in range(len(tail), 0, -1) if _PICTURE.startswith(tail[-length:])), 0)

"""Drops from a notebook's JSON, while it is read, what marking does not need: outputs may be of any size.

The values that `notebook.parse` looks at are kept; each dropped value becomes `null`. What is kept is passed on
unchanged, so that invalid JSON stays invalid. What is dropped is only searched for its end.
"""

import re

_KEPT = {
    1: {b"nbformat", b"cells"},
    3: {b"cell_type", b"source", b"metadata", b"id"},
    4: {b"nbgrader", b"autograder"},
}
"""The names whose values are kept, by the number of brackets around them; at other depths everything is kept."""
_MOST_PARTS = 8_000_000
"""Brackets that are met one by one: some 4 seconds' worth. A notebook with 60 MB of outputs has thousands."""
_LONGEST_NAME = 100
_QUOTE = ord('"')

# What is repeated stands in `(?>...)`: before 3.11.5 Python keeps what a last, failed round of `(...)*+` has passed.
_TEXT = rb'[^"\\]*+(?:(?>\\.[^"\\]*+))*+'
_REST_OF_STRING = re.compile(_TEXT, re.S)
_PLAIN = rb'[^"\[\]{}]*+'
_LEAF = rb'(?:"' + _TEXT + rb'"|\[' + _PLAIN + rb"\]|\{" + _PLAIN + rb"\})"
_TO_BRACKET = re.compile(_PLAIN + rb"(?:(?>" + _LEAF + _PLAIN + rb"))*+", re.S)
_TO_PART = re.compile(rb'[^"\[\]{}:,]*+')


class TooManyParts(Exception):
    """The file has more brackets and strings than can be looked through."""


class WithoutOutputs:
    """Takes a notebook's JSON in pieces of any length, and returns what is kept."""

    def __init__(self) -> None:
        self._depth = 0
        self._parts = 0
        self._left = b""
        """The first bytes of a string, if a piece ended inside it."""
        self._in_string = False
        self._dropping: int | None = None
        """The depth at which the dropped value ends."""
        self._name = b""
        """The last string, if it may be a name at this depth."""
        self._unwanted = False
        """Whether the next value is to be dropped."""

    def feed(self, piece: bytes) -> bytes:
        """What is kept of the next piece; raises TooManyParts."""
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
        """What is kept of an unfinished string at the end."""
        return self._left

    def _count(self) -> None:
        self._parts += 4  # each takes four times as long as a dropped one
        if self._parts > _MOST_PARTS:
            raise TooManyParts

    def _through_string(self, data: bytes, start: int, kept: list[bytes]) -> int:
        """To the end of a long string, or of the piece."""
        match = _REST_OF_STRING.match(data, start)
        assert match
        end = match.end()
        if end == len(data) or data[end : end + 1] == b"\\":  # the piece ends in the middle of an escape
            self._left = data[end:]
            position = len(data)
        else:
            end += 1
            self._in_string = False
            position = end
        if self._dropping is None:
            kept.append(data[start:end])
        elif not self._in_string and self._dropping == self._depth:
            self._dropping = None  # the value was this string
        return position

    def _through_dropped(self, data: bytes, position: int) -> int:
        """To the end of the dropped value, or of the piece."""
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
        """Past the next bracket, string, colon or comma in what is kept."""
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
        elif what in b"]}":
            self._depth -= 1
        self._unwanted = what == ord(":") and self._is_unwanted()
        self._name = b""
        kept.append(data[position : position + 1])
        return position + 1

    def _is_unwanted(self) -> bool:
        """Whether nothing looks at the value of this name; a name with an escape in it could be any name."""
        return self._name not in _KEPT.get(self._depth, {self._name}) and b"\\" not in self._name

    def _string(self, data: bytes, position: int, kept: list[bytes]) -> int:
        """Past a string: a name, a value to keep or one to drop."""
        if self._unwanted:
            self._unwanted = False
            self._dropping = self._depth
            self._in_string = True
            kept.append(b"null")
            return position + 1
        match = _REST_OF_STRING.match(data, position + 1)
        assert match
        end = match.end()
        if end < len(data) and data[end : end + 1] == b'"':
            self._name = data[position + 1 : end]
            kept.append(data[position : end + 1])
            return end + 1
        if len(data) - position <= _LONGEST_NAME:  # perhaps a name that ends in the next piece
            self._left = data[position:]
        else:
            self._name = b""
            self._in_string = True
            kept.append(b'"')
            return position + 1
        return len(data)

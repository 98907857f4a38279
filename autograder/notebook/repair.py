"""Mend the JSON of a notebook that other programs can read: `NaN`, half an emoji, bytes that are not UTF-8."""

import re

_TOKEN = re.compile(rb'"[^"\\]*+(?:(?>\\.[^"\\]*+))*+"|-?Infinity|NaN', re.S)
_ODD = re.compile(rb"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(\\u[dD][89a-fA-F]\w\w)|\\.|([\x00-\x1f])", re.S)


def repaired(content: bytes) -> bytes:
    """Return a notebook's JSON with `null` for numbers that JSON has not, and U+FFFD for what is not Unicode.

    Line ends and other control characters within strings are escaped. Takes time linear in the length.
    """
    return _TOKEN.sub(_token, content.decode("utf-8", "replace").encode())


def _token(match: re.Match[bytes]) -> bytes:
    return _ODD.sub(_character, match[0]) if match[0].startswith(b'"') else b"null"


def _character(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return b"\\ufffd"
    return b"\\u%04x" % match[2][0] if match[2] else match[0]

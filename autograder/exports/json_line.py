"""JSON as the commands print it: an object on a line, in which nothing is unprintable."""

import re
from typing import Any

import msgspec

_UNPRINTABLE = re.compile("[^\\x20-\\x7e]")


def json_line(value: Any) -> bytes:
    """One JSON object on a line, with every unprintable character escaped as its number."""
    text = msgspec.json.encode(value).decode()
    return _UNPRINTABLE.sub(_as_number, text).encode() + b"\n"


def _as_number(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable():
        return character
    in_pairs = character.encode("utf-16-be").hex()
    return "".join(f"\\u{in_pairs[at : at + 4]}" for at in range(0, len(in_pairs), 4))

"""Decide which names may become students' ids: they appear in paths, on pages, in terminals and in spreadsheets."""

import re
import unicodedata

from .notebook import is_visible

RULE = "letters and digits of any script and . _ - @ + ', the first not a dot or dash"
_KINDS = dict.fromkeys(".-", "-") | dict.fromkeys("_@+'", "_") | {"Nd": "0", "Mn": "^", "Mc": "^"}
"""A symbol for each character, or else each Unicode category, that ids may have besides letters."""
_ID = re.compile(r"(?!-)(?:L\^{0,3}|[-_0])+")
"""More accents than three on a letter, which no script writes, would hide the text below them."""
_OF_JAVASCRIPT = {
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
    *("toLocaleString", "toString", "valueOf"),
    *("__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"),
}
"""Properties of every object in JavaScript: formgrader's script looks students up by id, and would find these."""
_LONGEST = 255
"""Limit in bytes of a folder's name on Linux and macOS."""


def can_be_id(name: str) -> bool:
    """Return whether a new student may have this id.

    A vowel sign or an accent counts with the letter before it, regardless of whether Unicode has one character for
    both. Invisible characters, such as joiners and changes of direction, are not letters.
    """
    return (
        bool(_ID.fullmatch("".join(map(_kind, unicodedata.normalize("NFC", name)))))
        and name not in _OF_JAVASCRIPT
        and all(map(is_visible, name))
        and len(name.encode()) <= _LONGEST
    )


def _kind(character: str) -> str:
    category = unicodedata.category(character)
    return _KINDS.get(character) or _KINDS.get(category) or ("L" if category[0] == "L" else "?")

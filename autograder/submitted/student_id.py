"""Which names may become students' ids: they appear in paths, on pages, in terminals and in spreadsheets."""

import re
import unicodedata

from ..course.notebook import is_visible

RULE = "letters and digits of any script and . _ - @ + ', the first not a dot or dash"
_MARKS = "._-@+'"
_OF_JAVASCRIPT = {
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
    *("toLocaleString", "toString", "valueOf"),
    *("__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"),
}
"""What every object in JavaScript has: formgrader's script looks students up by id, and would find these."""
_TOO_MANY_MARKS = re.compile("M{4}")
"""In categories of characters: more accents on a letter than any script writes, which hide what is below them."""
_LONGEST = 255
"""In bytes, for a folder's name on Linux and macOS."""


def can_be_id(name: str) -> bool:
    """Whether a new student may have this id.

    A vowel sign or an accent counts with the letter before it, whether or not Unicode has one character for both.
    Invisible characters, such as joiners and changes of direction, are not letters.
    """
    composed = unicodedata.normalize("NFC", name)
    kinds = [unicodedata.category(character) for character in composed]
    follows = ["", *kinds]
    return (
        bool(name)
        and name[0] not in ".-"
        and name not in _OF_JAVASCRIPT
        and all(
            kind[0] == "L"
            or kind == "Nd"
            or (kind in ("Mn", "Mc") and before[:1] in ("L", "M"))
            or (before is not None and character in _MARKS)
            for character, kind, before in zip(composed, kinds, follows, strict=False)
        )
        and all(map(is_visible, name))
        and not _TOO_MANY_MARKS.search("".join(kind[0] for kind in kinds))
        and len(name.encode()) <= _LONGEST
    )

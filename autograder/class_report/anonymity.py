"""Whether a text that comes from a student could tell who somebody is."""

import keyword
import re
import unicodedata
from collections.abc import Iterable
from itertools import permutations
from pathlib import PurePosixPath

from ..gradebook.roster import Enrolled

_LONG = 4
"""Letters of a name that is found inside of a word too, also where two parts of a name are written together. A shorter
one counts where it stands alone; a single letter only if it is all of an id or a name."""
_PART = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_OF_PYTHON = set(map(str.lower, keyword.kwlist))
"""Who is called As or In is not told by a word that is in all code."""
_OF_A_PATH = "…/"
"""What marking leaves of the folders of a path."""


def full_name(student: Enrolled) -> str:
    """First and last name, as far as they are known."""
    return " ".join(filter(None, (student.first_name, student.last_name)))


class Names:
    """The ids, names and addresses of a class, and their parts, alone and written together."""

    def __init__(self, students: Iterable[Enrolled], everyones: str = "") -> None:
        """everyones: the unit's own texts. What a file is called after a word in them tells nobody."""
        written = {text for one in students for text in (one.id, full_name(one), (one.email or "").partition("@")[0])}
        whole = set(map(_plain, filter(None, written)))
        of_each = {text: _PART.findall(text) for text in whole}
        parts = whole | {part for its in of_each.values() for part in its if len(part) > 1}
        together = {one + other for its in of_each.values() for one, other in permutations(its, 2)}
        parts -= _OF_PYTHON
        self._long = {part for part in parts | together if len(part) >= _LONG}
        self._short = parts - self._long
        self._everyones = _plain(everyones)

    def is_in(self, text: str, file: str = "") -> bool:
        """Whether one of them stands in the text, in whatever case, with accents or without; or a path does.

        file: what the notebook was called that the text is from. It counts there alone: called `return`, it would
        else leave nothing to be shown of anybody's code.
        """
        plain = _plain(text)
        words = {*_WORD.findall(plain), *_PART.findall(plain)}
        named = not words.isdisjoint(self._short) or any(part in plain for part in self._long)
        stem = _plain(PurePosixPath(file).stem)
        is_own = stem not in self._everyones and stem not in _OF_PYTHON
        if file and is_own and (stem in plain if len(stem) >= _LONG else stem in words):
            return True
        return named or _OF_A_PATH in text


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))

"""Whether a text that comes from a student could tell who somebody is."""

import keyword
import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

from ..gradebook.class_marks import StudentMarks

_LONG = 4
"""Letters of a name that is found inside of a word too. A shorter one counts where it stands alone; a single letter
only if it is all of an id or a name."""
_PART = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_OF_PYTHON = set(map(str.lower, keyword.kwlist))
"""Who is called As or In is not told by a word that is in all code."""
_OF_A_PATH = "…/"
"""What marking leaves of the folders of a path."""


class Names:
    """The ids, names and addresses of a class, their parts, and the names of the files that were handed in."""

    def __init__(self, students: Iterable[StudentMarks], files: Iterable[str] = ()) -> None:
        written = {text for one in students for text in (one.student, one.name, one.email.partition("@")[0]) if text}
        whole = set(map(_plain, written))
        parts = whole | {part for text in whole for part in _PART.findall(text) if len(part) > 1}
        parts |= {_plain(PurePosixPath(file).stem) for file in files}
        self._long = {part for part in parts if len(part) >= _LONG}
        self._short = parts - self._long - _OF_PYTHON

    def is_in(self, text: str) -> bool:
        """Whether one of them stands in the text, in whatever case, with accents or without; or a path does."""
        plain = _plain(text)
        words = {*_WORD.findall(plain), *_PART.findall(plain)}
        named = not words.isdisjoint(self._short) or any(part in plain for part in self._long)
        return named or _OF_A_PATH in text


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))

"""Edits of code: what is written in place of what.

An edit is written `old -> new`. It is found by its words and signs: spaces, line ends and the kind of quotation marks
do not count. `{}` in the new text stands for what was found.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

_WORDS = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|\w+|\S')
_ARROW = re.compile(r"\s+->(?:\s+|$)")


class EditError(ValueError):
    """An edit that cannot be made; says why."""


@dataclass(frozen=True)
class Edit:
    """One change: `new` in the place where `old` is found, or in each such place if it is made `everywhere`."""

    old: str
    new: str
    everywhere: bool = False

    @classmethod
    def parse(cls, written: str, *, everywhere: bool = False) -> "Edit":
        """Reads `old -> new`; raises EditError."""
        parts = _ARROW.split(written.rstrip("\n"), maxsplit=1)
        if len(parts) != 2 or not parts[0].strip():
            raise EditError(f"an edit is written `old -> new`, not `{written.strip()}`")
        return cls(parts[0], parts[1], everywhere)

    def places(self, text: str) -> Sequence[tuple[int, int]]:
        """Begin and end of each place; raises EditError unless there is one, or with `everywhere` more than one."""
        found = _places(self.old, text)
        if self.everywhere and len(found) < 2:
            raise EditError(f"`{self.old}` should be there more than once, and is {len(found)} times")
        if not self.everywhere and len(found) != 1:
            raise EditError(f"`{self.old}` should be there exactly once, and is {len(found)} times")
        return found


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits made; raises EditError, also where two of them overlap."""
    changes = [(begin, end, edit) for edit in edits for begin, end in edit.places(text)]
    changes.sort(key=lambda change: change[:2])
    for (_, end, one), (begin, _, other) in pairwise(changes):
        if begin < end:
            raise EditError(f"`{one.old}` and `{other.old}` overlap")
    for begin, end, edit in reversed(changes):
        line = text[:begin].rpartition("\n")[2]
        indent = line[: len(line) - len(line.lstrip())]
        new = edit.new.replace("{}", text[begin:end]).replace("\n", f"\n{indent}")
        text = text[:begin] + new + text[end:]
    return text


@cache  # two edits are made together thousands of times, in the same few texts
def _places(old: str, text: str) -> Sequence[tuple[int, int]]:
    wanted = [_plain(word) for word in _WORDS.findall(old)]
    words, there = _words(text)
    return [
        (there[i][0], there[i + len(wanted) - 1][1])
        for i in range(len(words) - len(wanted) + 1)
        if wanted and words[i : i + len(wanted)] == wanted
    ]


@cache
def _words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The words and signs of a text, and where each stands."""
    there = list(_WORDS.finditer(text))
    return [_plain(match[0]) for match in there], [match.span() for match in there]


def _plain(word: str) -> str:
    return f'"{word[1:-1]}"' if word[0] == "'" and len(word) > 1 else word

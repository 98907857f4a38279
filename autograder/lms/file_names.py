"""What Canvas and Moodle put into the names in a zip file of submissions: whose file it is, and what it was called.

Canvas: `oneilada_1001_70001_self_attention.ipynb` or `oneilada_LATE_1001_70001_self_attention-1.ipynb`: the sortable
name, the number of the user and that of the file. Moodle: `Ada O Neil_501_assignsubmission_file/self_attention.ipynb`,
in older versions with `_` before the `/`, or in its place: the name and the number of the participant.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Platform = Literal["Canvas", "Moodle"]

_LONGEST = 500
"""In characters: platforms shorten names, and a long one could be read in very many ways."""
_PLATFORMS: tuple[Platform, ...] = ("Moodle", "Canvas")
_MOODLES = re.compile(r"_([0-9]{1,20})_assignsubmission_([a-z0-9]+)(?=_|\Z)", re.S)
_MOODLES_WORD = "_assignsubmission_"
_DEEPEST = 50
"""Limit for the parts of a path that are inspected."""
_TYPED = {"text.html": "text typed into Canvas", "link.html": "a link"}
_LATE = "_LATE"


@dataclass(frozen=True)
class Reading:
    """One way to read a name."""

    platform: Platform
    name: str
    """The student's, or what the platform left of it."""
    number: str
    """The platform's own, of a user of Canvas's or a participant of Moodle's."""
    file: str
    """The file's name in the submission, perhaps in folders; empty if there is no file but `instead`."""
    returned: str
    """What the name of a file of feedback begins with, so that the platform knows whose it is."""
    is_late: bool = False
    newness: int = 0
    """Of two files with one name the one with the larger number came later."""
    instead: str = ""
    """Description of a submission that is not a file."""


@dataclass(frozen=True)
class Layout:
    """Platform and path level that the names in a zip file follow."""

    platform: Platform | Literal[""]
    """Empty if no name is as Canvas or Moodle make them."""
    level: int = 0
    """Position in a path of the part that the platform made. The student chose the parts after it."""


def layout(paths: Iterable[str], expected: str = "") -> Layout:
    """Decide whose zip file has these paths in it, and which part of a path the platform made.

    A name that can be either platform's tells nothing: on Canvas a student may call a file as Moodle would, on Moodle
    as Canvas would, but never so that it can be the other's only. The platform's part is the outermost that half of the
    names or more can have: one further within is a student's, and one further out is a stray file's.

    expected: the roster's platform. It decides if any name can be its own only; else the majority does.
    """
    able = [_able(path) for path in paths]
    votes: dict[Platform, int] = dict.fromkeys(_PLATFORMS, 0)
    for each in able:
        if len(each) == 1:
            votes[next(iter(each))] += 1
    if not any(able):
        return Layout("")
    best = max(_PLATFORMS, key=lambda name: (bool(votes[name]) and name == expected, votes[name], name == expected))
    levels = [each[best] for each in able if best in each]
    count = Counter(level for each in levels for level in each)
    of_half = [level for level in count if 2 * count[level] >= len(levels)]
    of_most = [level for level in count if count[level] == max(count.values())]
    return Layout(best, min(of_half or of_most, default=0))


def readings(path: str, its: Layout) -> list[Reading]:
    """The ways to read the path of a file in the zip; none if it is not a submission's.

    A name of Canvas's has several where the student's name or the file's, which the student chose, has numbers in it.
    """
    parts = _parts(path)
    if its.level >= len(parts):
        return []
    part, below = parts[its.level], parts[its.level + 1 :]
    if its.platform == "Canvas":
        return [] if below else _canvas(part)
    found = _MOODLES.findall(part) if its.platform == "Moodle" else []
    # With the word twice in it, the student's name or the file's was made to look so.
    return [_moodles(found[0], part, below)] if len(found) == part.count(_MOODLES_WORD) == 1 else []


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")


def _able(path: str) -> dict[Platform, set[int]]:
    """The places of the parts of a path that can be a platform's, by platform."""
    parts = _parts(path)
    moodles = {level for level, part in enumerate(parts[:_DEEPEST]) if _MOODLES.search(part)}
    canvas = {len(parts) - 1} if _canvas(parts[-1]) else set()
    found: dict[Platform, set[int]] = {"Moodle": moodles, "Canvas": canvas}
    return {platform: levels for platform, levels in found.items() if levels}


def _moodles(found: tuple[str, str], part: str, below: list[str]) -> Reading:
    number, kind = found
    name, _, rest = part.partition(f"_{number}_assignsubmission_{kind}")
    own = rest.removeprefix("_")
    file = "/".join([own, *below] if own else below)
    returned = f"{part}/" if not own else part.removesuffix(own)
    instead = "" if kind == "file" else f"{kind} in Moodle"
    return Reading("Moodle", name, number, file, returned, instead=instead)


def _canvas(name: str) -> list[Reading]:
    words = name.split("_") if len(name) <= _LONGEST else []
    found = []
    for place in range(1, len(words) - 1):
        user, file_number = words[place], words[place + 1]
        who = "_".join(words[:place])
        student = who.removesuffix(_LATE)
        if not _is_number(user):
            continue
        if _is_number(file_number) and len(words) > place + 2:
            file = "_".join(words[place + 2 :])
            begins = f"{who}_{user}_{file_number}_"
            found.append(Reading("Canvas", student, user, file, begins, who != student, int(file_number)))
        elif words[place + 1 :] == [file_number] and file_number in _TYPED:
            found.append(Reading("Canvas", student, user, "", "", who != student, instead=_TYPED[file_number]))
    return found


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= 20

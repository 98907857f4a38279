"""What Canvas and Moodle put into the names in a zip file of submissions: whose file it is, and what it was called.

Canvas: `oneilada_1001_70001_self_attention.ipynb` or `oneilada_LATE_1001_70001_self_attention-1.ipynb`: the sortable
name, the number of the user and that of the file. Moodle: `Ada O Neil_501_assignsubmission_file/self_attention.ipynb`,
in older versions with `_` before the `/`, or in its place: the name and the number of the participant.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Platform = Literal["Canvas", "Moodle"]

_LONGEST = 500
"""In characters: platforms shorten names, and a long one could be read in very many ways."""
_MOODLES = re.compile(r"(?P<name>[^_]*)_(?P<number>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?", re.S)
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
    """What was handed in in place of a file."""


def platform_of(paths: Iterable[str]) -> Platform | Literal[""]:
    """Whose zip file has these paths in it; empty if nobody's.

    One path as Moodle makes them tells: Canvas puts two numbers behind a name. The other way round nothing is told,
    because in Moodle's a student chooses what a file is called, and may choose what Canvas would make of it.
    """
    found: set[Platform] = {one.platform for path in paths for one in readings(path)}
    return "Moodle" if "Moodle" in found else "Canvas" if found else ""


def readings(path: str) -> list[Reading]:
    """The ways to read the path of a file in the zip; none if it is not a submission's.

    A name of Canvas's has several where the student's name or the file's, which the student chose, has numbers in it.
    """
    parts = path.replace("\\", "/").split("/")
    for place, part in enumerate(parts):
        found = _MOODLES.fullmatch(part)
        if found:
            return [_moodles(found, part, parts[place + 1 :])]
    return _canvas(parts[-1])


def _moodles(found: re.Match[str], part: str, below: list[str]) -> Reading:
    own = found["file"] or ""
    file = "/".join([own, *below] if own else below)
    returned = f"{part}/" if not own else part.removesuffix(own)
    instead = "" if found["kind"] == "file" else f"{found['kind']} in Moodle"
    return Reading("Moodle", found["name"], found["number"], file, returned, instead=instead)


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

"""Find the student of a file in a zip file of submissions, by the name in its path and the platform's number.

Canvas and Moodle put the student and the original name into file names. Canvas:
`oneilada_1001_70001_self_attention.ipynb` or `oneilada_LATE_1001_70001_self_attention-1.ipynb`: the sortable name, the
number of the user and that of the file. Moodle: `Ada O Neil_501_assignsubmission_file/self_attention.ipynb`, in older
versions with `_` before the `/`, or instead of it: the name and the number of the participant.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..gradebook.roster import Enrolled, Roster

Platform = Literal["Canvas", "Moodle"]

_PLATFORMS: tuple[Platform, ...] = ("Moodle", "Canvas")
_LONGEST = 500
"""Limit for the characters of a name: platforms shorten names, and a long one could be read in very many ways."""
_DEEPEST = 50
"""Limit for the parts of a path that are inspected."""
_MOODLE_WORD = "_assignsubmission_"
_MOODLE_PART = re.compile(r"_([0-9]{1,20})_assignsubmission_([a-z0-9]+)(?=_|\Z)", re.S)
_NUMBER = re.compile(r"[0-9]{1,20}")
_TYPED = {"text.html": "text typed into Canvas", "link.html": "a link"}
_LATE = "_LATE"
_ADVICE = "use the platform's own table, which contains its numbers, as the roster"


@dataclass(frozen=True)
class Reading:
    """One way to read a name."""

    platform: Platform
    name: str
    """The student's name, or what the platform left of it."""
    number: str
    """The platform's own number of a user of Canvas or a participant of Moodle."""
    file: str
    """The file's name in the submission, perhaps in folders; empty if there is no file but `instead`."""
    returned: str
    """The beginning of the name of a feedback file, by which the platform knows the student."""
    is_late: bool = False
    newness: int = 0
    """Order of files with the same name: the larger number was submitted later."""
    instead: str = ""
    """Description of a submission that is not a file."""


@dataclass(frozen=True)
class Layout:
    """Platform and path level that the names in a zip file follow."""

    platform: Platform | Literal[""]
    """Empty if no name is as Canvas or Moodle write them."""
    level: int = 0
    """Position in a path of the part that the platform wrote. The student chose the parts after it."""


def layout(paths: Iterable[str], expected: str = "") -> Layout:
    """Decide which platform's zip file has these paths in it, and which part of a path the platform wrote.

    A name that can be either platform's decides nothing: on Canvas a student may name a file as Moodle would, and on
    Moodle as Canvas would, but never so that it can only be the other platform's. The platform's part is the outermost
    one that at least half of the names can have. A part further within is a student's, and one further out a stray
    file's.

    expected: the roster's platform. It decides if any name can only be its own; else the majority does.
    """
    candidates = [_levels(path) for path in paths]
    votes = Counter(platform for levels in candidates if len(levels) == 1 for platform in levels)
    if not any(candidates):
        return Layout("")
    best = max(_PLATFORMS, key=lambda name: (bool(votes[name]) and name == expected, votes[name], name == expected))
    of_best = [levels[best] for levels in candidates if best in levels]
    count = Counter(level for levels in of_best for level in levels)
    least = min(len(of_best) / 2, max(count.values(), default=0))
    return Layout(best, min((level for level in count if count[level] >= least), default=0))


def readings(path: str, layout: Layout) -> list[Reading]:
    """Return the ways to read the path of a file in the zip; none if it is not a submission's.

    A name from Canvas has several if the student's name or the file's, which the student chose, contains numbers.
    """
    parts = _parts(path)
    if layout.level >= len(parts):
        return []
    part, below = parts[layout.level], parts[layout.level + 1 :]
    if layout.platform == "Canvas":
        return [] if below else _canvas(part)
    matches = list(_MOODLE_PART.finditer(part)) if layout.platform == "Moodle" else []
    # With the word in it twice, the student's name or the file's was chosen to imitate it.
    return [_moodle(matches[0], below)] if len(matches) == part.count(_MOODLE_WORD) == 1 else []


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")


def _levels(path: str) -> dict[Platform, set[int]]:
    """Return the positions of the parts of a path that each platform may have written."""
    parts = _parts(path)
    moodle = {level for level, part in enumerate(parts[:_DEEPEST]) if _MOODLE_PART.search(part)}
    canvas = {len(parts) - 1} if _canvas(parts[-1]) else set()
    levels: dict[Platform, set[int]] = {"Moodle": moodle, "Canvas": canvas}
    return {platform: positions for platform, positions in levels.items() if positions}


def _moodle(match: re.Match[str], below: list[str]) -> Reading:
    number, kind = match.groups()
    part = match.string
    own = part[match.end() :].removeprefix("_")
    file = "/".join([own, *below] if own else below)
    returned = part.removesuffix(own) if own else f"{part}/"
    instead = "" if kind == "file" else f"{kind} in Moodle"
    return Reading("Moodle", part[: match.start()], number, file, returned, instead=instead)


def _canvas(name: str) -> list[Reading]:
    words = name.split("_") if len(name) <= _LONGEST else []
    found = []
    for position in range(1, len(words) - 1):
        user, number, *file = words[position:]
        prefix = "_".join(words[:position])
        student = prefix.removesuffix(_LATE)
        is_late = student != prefix
        if not _NUMBER.fullmatch(user):
            continue
        if _NUMBER.fullmatch(number) and file:
            begins = f"{prefix}_{user}_{number}_"
            found.append(Reading("Canvas", student, user, "_".join(file), begins, is_late, int(number)))
        elif number in _TYPED and not file:
            found.append(Reading("Canvas", student, user, "", "", is_late, instead=_TYPED[number]))
    return found


class NotMatched(Exception):
    """No student on the roster matches with certainty; `str()` says why."""


class RosterMatcher:
    """Finds students on a roster.

    If the roster has the platform's number of a student, the number decides, and the name must not contradict it:
    students may change their name on Canvas, a number in a name can be read as another student's, and Moodle has other
    numbers in each assignment. If it has none, the name must be that of exactly one student.
    """

    def __init__(self, roster: Roster) -> None:
        self._names = {student.id: _names(roster, student) for student in roster.students}
        column = {"Canvas": "ID", "Moodle": "Identifier"}.get(roster.platform, "lms_user_id")
        numbers = {student.id: _last_number(roster.value(student.id, column)) for student in roster.students}
        count = Counter(numbers.values())
        self._by_number = {number: student for student, number in numbers.items() if number and count[number] == 1}
        known = set(self._by_number.values())
        self._without_number = [student for student in self._names if student not in known]

    def student(self, readings: Sequence[Reading]) -> tuple[str, Reading]:
        """Return the student, and the correct one of a platform's readings; raises NotMatched."""
        reading = next((reading for reading in readings if reading.number in self._by_number), None)
        if reading is None:
            return self._by_name(readings)
        if len({reading.number for reading in readings}) > 1:
            raise NotMatched("it can be read as the name of more than one student's file")
        student = self._by_number[reading.number]
        if self._names[student] and not self._names[student] & _possible_names(reading):
            raise NotMatched(f"number {reading.number} belongs to {student}, who has another name on the roster")
        return student, reading

    def _by_name(self, readings: Sequence[Reading]) -> tuple[str, Reading]:
        reading = readings[0]
        if not self._without_number:
            raise NotMatched(f"number {reading.number} is not on the roster")
        if len(readings) > 1:
            raise NotMatched(f"it can be read in more than one way; {_ADVICE}")
        name = _plain(reading.name)
        students = [one for one in self._without_number if name and name in {*self._names[one], _plain(one)}]
        if not students:
            raise NotMatched("nobody on the roster has this name")
        if len(students) > 1:
            raise NotMatched(f"several students have this name; {_ADVICE}")
        return students[0], reading


def _possible_names(reading: Reading) -> set[str]:
    """Return the names that a student with a number may have in a path: Moodle puts `Group A-` before the name."""
    parts = reading.name.split("-") if reading.platform == "Moodle" else [reading.name]
    return {_plain("-".join(parts[position:])) for position in range(len(parts))}


def _names(roster: Roster, student: Enrolled) -> set[str]:
    """Return the names that a zip file may have for a student: the first name first, or the last."""
    columns = ("student", "full name", "first name / last name", "first name / surname")
    whole = [roster.value(student.id, column) for column in columns]
    first, last = student.first_name or "", student.last_name or ""
    return {plain for name in (*whole, first + last, last + first) if (plain := _plain(name))}


def _plain(name: str) -> str:
    """Return the letters and digits of a name: the platforms leave out some of the other characters."""
    composed = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return "".join(letter for letter in composed if letter.isalnum() or unicodedata.category(letter)[0] == "M")


def _last_number(value: str) -> str:
    """Return `501` of `Participant 501`, the form in Moodle's grading worksheet."""
    match = re.search(r"[0-9]+$", value)
    return match[0] if match else ""

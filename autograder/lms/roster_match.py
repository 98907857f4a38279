"""Find the student to whom a file in a zip file of submissions belongs.

Canvas and Moodle put the student's name, a number of the student and the original file name into the path.

Canvas: `oneilada_1001_70001_self_attention.ipynb` or, if late and submitted again,
`oneilada_LATE_1001_70001_self_attention-1.ipynb`. The parts are the sortable name, the user's number, the file's number
and the original file name.

Moodle: `Ada O Neil_501_assignsubmission_file/self_attention.ipynb`. The parts are the participant's name and number,
and the original file name. Older versions write `_/`, or only `_`, in the position of the `/`.
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
"""Most characters of a name that is read: platforms shorten names, and a longer one could be read in too many ways."""
_DEEPEST = 50
"""Most parts of a path that are read."""
_MOODLE_WORD = "_assignsubmission_"
_MOODLE_PART = re.compile(r"_([0-9]{1,20})_assignsubmission_([a-z0-9]+)(?=_|\Z)", re.S)
_NUMBER = re.compile(r"[0-9]{1,20}")
_TYPED = {"text.html": "text typed into Canvas", "link.html": "a link"}
_LATE = "_LATE"
_ADVICE = "use the platform's own table, which contains its numbers, as the roster"


@dataclass(frozen=True)
class Reading:
    """One way to read the path of a file in a zip file of submissions."""

    platform: Platform
    name: str
    """The student's name; the platform may have shortened it."""
    number: str
    """The number of the user in Canvas, or of the participant in Moodle."""
    file: str
    """The file's path in the submission; empty if the submission is not a file."""
    returned: str
    """Prefix of the feedback file's name, by which the platform finds the student."""
    is_late: bool = False
    newness: int = 0
    """Number that is larger for a file submitted later than another of the same name."""
    instead: str = ""
    """Description of a submission that is not a file, such as `a link`; empty for files."""


def platform_of(paths: Iterable[str], expected: str = "") -> Platform | Literal[""]:
    """Return the platform that made a zip file with these paths; empty if no path has the form of Canvas or Moodle.

    A path that has the form of both platforms does not count: a student on one platform may choose a file name in the
    other's form, but the path then still has the form of the first platform.

    expected: the roster's platform, or empty. It is returned if any path has only its form; otherwise the majority of
    the paths decides.
    """
    forms = [[platform for platform in _PLATFORMS if _has_form(path, platform)] for path in paths]
    if not any(forms):
        return ""
    votes = Counter(platform for platforms in forms if len(platforms) == 1 for platform in platforms)
    return max(_PLATFORMS, key=lambda name: (bool(votes[name]) and name == expected, votes[name], name == expected))


def _has_form(path: str, platform: Platform) -> bool:
    return bool(_canvas(_parts(path)[-1]) if platform == "Canvas" else any(map(_MOODLE_PART.search, _parts(path))))


def readings(path: str, platform: str) -> list[Reading]:
    """Return all ways to read the path of a file in a zip file; empty if it does not have the platform's form.

    A path from Canvas may have several, because names that a student chose may contain numbers. In a path from Moodle,
    the platform wrote the outermost part that has its form, and the student chose the parts within.
    """
    parts = _parts(path)
    if platform != "Moodle":
        return _canvas(parts[-1]) if platform else []
    level = next((level for level, part in enumerate(parts) if _MOODLE_PART.search(part)), 0)
    matches = list(_MOODLE_PART.finditer(parts[level]))
    # With the word in it twice, the student's name or the file's was chosen to imitate it.
    return [_moodle(matches[0], parts[level + 1 :])] if len(matches) == parts[level].count(_MOODLE_WORD) == 1 else []


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")[:_DEEPEST]


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
    """Raised if no student on the roster matches a file with certainty; `str()` says why."""


class RosterMatcher:
    """Finds the student on a roster to whom a file belongs.

    If the roster has the platform's number of the student, the number decides, but the roster's name must match as
    well: a number in a file name could be read as another student's, and Moodle has other numbers in each assignment.
    If the roster lacks the number, the name must belong to exactly one student.
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
        """Return the id of the student to whom a file belongs, and the right reading of its path; raises NotMatched.

        readings: all ways to read the path.
        """
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
    """Return the student's possible names in a path, in plain form: Moodle may write `Group A-` before the name."""
    parts = reading.name.split("-") if reading.platform == "Moodle" else [reading.name]
    return {_plain("-".join(parts[position:])) for position in range(len(parts))}


def _names(roster: Roster, student: Enrolled) -> set[str]:
    """Return a student's names, in plain form, as paths may contain them: with the first or the last name first."""
    columns = ("student", "full name", "first name / last name", "first name / surname")
    whole = [roster.value(student.id, column) for column in columns]
    first, last = student.first_name or "", student.last_name or ""
    return {plain for name in (*whole, first + last, last + first) if (plain := _plain(name))}


def _plain(name: str) -> str:
    """Return a name's plain form: only letters and digits, in lower case. Platforms drop some other characters."""
    composed = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return "".join(letter for letter in composed if letter.isalnum() or unicodedata.category(letter)[0] == "M")


def _last_number(value: str) -> str:
    """Return the number at the end of a text, such as `501` for Moodle's `Participant 501`; empty without a number."""
    match = re.search(r"[0-9]+$", value)
    return match[0] if match else ""

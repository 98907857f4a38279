"""Whose a file in a zip file of submissions is: the name in it and the platform's number, joined to the roster."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from ..gradebook.roster import Enrolled, Roster
from .file_names import Reading

_TAKE_THEIRS = "take the platform's own table for the roster, which has its numbers"


class NotMatched(Exception):
    """Nobody on the roster, or nobody for certain; `str()` says why."""


class RosterMatcher:
    """Finds students on a roster.

    Where the roster has a student's number of the platform's, the number decides, and the name must not contradict it:
    students may change what Canvas calls them, a number in a name can be read for another's, and Moodle has other
    numbers in each assignment. Where it has none, the name must be that of one student alone.
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
        """The student, and the reading that is right; readings are of one platform's. Raises NotMatched."""
        claimed = [one for one in readings if one.number in self._by_number]
        if not claimed:
            return self._named(readings)
        if len({one.number for one in readings}) > 1:
            raise NotMatched("it can be read as the name of more than one student's file")
        reading, student = claimed[0], self._by_number[claimed[0].number]
        if self._names[student] and not self._names[student] & _called(reading):
            raise NotMatched(f"number {reading.number} is {student}'s, who has another name on the roster")
        return student, reading

    def _named(self, readings: Sequence[Reading]) -> tuple[str, Reading]:
        if not self._without_number:
            raise NotMatched(f"number {readings[0].number} is not on the roster")
        if len(readings) > 1:
            raise NotMatched(f"it can be read in more than one way; {_TAKE_THEIRS}")
        (reading,) = readings
        name = _plain(reading.name)
        found = [
            student for student in self._without_number if name and name in {*self._names[student], _plain(student)}
        ]
        if not found:
            raise NotMatched("nobody on the roster has this name")
        if len(found) > 1:
            raise NotMatched(f"several students have this name; {_TAKE_THEIRS}")
        return found[0], reading


def _called(reading: Reading) -> set[str]:
    """The names that a student with a number may have in a path: Moodle puts `Group A-` before the name."""
    parts = reading.name.split("-") if reading.platform == "Moodle" else [reading.name]
    return {_plain("-".join(parts[place:])) for place in range(len(parts))}


def _names(roster: Roster, student: Enrolled) -> set[str]:
    """What the student may be called in a zip file: the first name first, or the last."""
    columns = ("student", "full name", "first name / last name", "first name / surname")
    whole = [roster.value(student.id, column) for column in columns]
    first, last = student.first_name or "", student.last_name or ""
    return {plain for name in (*whole, first + last, last + first) if (plain := _plain(name))}


def _plain(name: str) -> str:
    """The letters and digits of a name: of the rest the platforms leave out this and that."""
    composed = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return "".join(one for one in composed if one.isalnum() or unicodedata.category(one)[0] == "M")


def _last_number(value: str) -> str:
    """`501` of `Participant 501`, as Moodle's grading worksheet has it."""
    found = re.search(r"[0-9]+$", value)
    return found[0] if found else ""

"""Whose a file in a zip file of submissions is: the name in it and the platform's number, joined to the roster."""

import re
import unicodedata
from collections.abc import Sequence

from ..gradebook.roster import Enrolled, Roster
from .file_names import Reading

_TAKE_THEIRS = "take the platform's own table for the roster, which has its numbers"


class NotMatched(Exception):
    """Nobody on the roster, or nobody for certain; `str()` says why."""


class Whose:
    """Finds students on a roster.

    Where the roster has the platform's numbers, the number decides, and the name must not contradict it: students may
    change what Canvas calls them, and a number in a name can be read for another's. Where it has none, the name must
    be that of one student alone.
    """

    def __init__(self, roster: Roster) -> None:
        self._names = {student.id: _names(roster, student) for student in roster.students}
        column = {"Canvas": "ID", "Moodle": "Identifier"}.get(roster.platform, "")
        numbers = {student.id: _last_number(roster.value(student.id, column)) for student in roster.students}
        self._by_number = {number: student for student, number in numbers.items() if number}

    def student(self, readings: Sequence[Reading]) -> tuple[str, Reading]:
        """The student, and the reading that is right; readings are of the roster's platform. Raises NotMatched."""
        if self._by_number:
            return self._numbered(readings)
        return self._named(readings)

    def _numbered(self, readings: Sequence[Reading]) -> tuple[str, Reading]:
        claimed = [one for one in readings if one.number in self._by_number]
        if not claimed:
            raise NotMatched(f"number {readings[0].number} is not on the roster")
        if len({one.number for one in readings}) > 1:
            raise NotMatched("it can be read as the name of more than one student's file")
        reading, student = claimed[0], self._by_number[claimed[0].number]
        if self._names[student] and _plain(reading.name) not in self._names[student]:
            raise NotMatched(f"number {reading.number} is {student}'s, who has another name on the roster")
        return student, reading

    def _named(self, readings: Sequence[Reading]) -> tuple[str, Reading]:
        if len(readings) > 1:
            raise NotMatched(f"it can be read in more than one way; {_TAKE_THEIRS}")
        (reading,) = readings
        name = _plain(reading.name)
        found = [student for student, names in self._names.items() if name and name in {*names, _plain(student)}]
        if not found:
            raise NotMatched("nobody on the roster has this name")
        if len(found) > 1:
            raise NotMatched(f"several students have this name; {_TAKE_THEIRS}")
        return found[0], reading


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

"""Find the student of a file in a zip file of submissions, by the name in its path and the platform's number."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from ..gradebook.roster import Enrolled, Roster
from .file_names import Reading

_ADVICE = "take the platform's own table for the roster, which has its numbers"


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
            raise NotMatched(f"number {reading.number} is {student}'s, who has another name on the roster")
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

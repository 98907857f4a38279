"""The table of a class's marks: for a spreadsheet, for Canvas's gradebook, for Moodle's grades."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .. import course
from ..gradebook import marks
from ..gradebook.class_list import class_list
from ..gradebook.course_directory import CourseProblem, course_directory
from ..gradebook.marks import Mark, UnitMarks
from ..gradebook.roster import Roster
from ..gradebook.spreadsheet import number, text, value
from ..submitted.folder import OpenedFolder

NOT_SUBMITTED, NOT_GRADED, GRADED = "not_submitted", "not_graded", "graded"
"""Where there is no status of a report's: nothing came, it is not marked yet, or nbgrader's own command marked it."""
_CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_POINTS_POSSIBLE = "    Points Possible"
_OF_CANVAS = {"EX", "N/A"}
"""What Canvas has in place of a mark for who is excused, or need not hand in."""
_ASSIGNMENT_NUMBER = re.compile(r" \(\d+\)$")
_WORKSHEET = {"identifier", "grade"}
"""The columns by which a grading worksheet of Moodle's is known."""

_APOSTROPHE = re.compile(r"(?:^|[;\t\r\n])'")
"""Where `spreadsheet.text` puts one."""
_TAKEN_BACK = re.compile(r"status|grade|maximum grade|grade can be changed|last modified \(.*\)")
"""Its columns that are written again. Comments are not: with an apostrophe before one it would be another."""


class NoTable(Exception):
    """The table cannot be made; `str()` says why and what to do."""


@dataclass(frozen=True)
class MarkedClass:
    """What the tables are made of."""

    roster: Roster
    units: list[UnitMarks]
    handed_in: Mapping[str, frozenset[str]]
    """By unit: who has a submission on the disk."""

    def status(self, student: str, unit: UnitMarks) -> str:
        """The status of the student's mark; why there is none, if there is none."""
        if student in unit.marks:
            return unit.marks[student].status or GRADED
        return NOT_GRADED if student in self.handed_in[unit.unit] else NOT_SUBMITTED

    def score(self, student: str, unit: UnitMarks) -> str:
        """The score as text; empty if what was handed in is not graded."""
        mark = unit.marks.get(student)
        if mark is None and self.status(student, unit) == NOT_GRADED:
            return ""
        return number(mark.score if mark else 0.0)

    @property
    def listed(self) -> list[str]:
        """Who is on the roster."""
        return [student.id for student in self.roster.students]

    @property
    def unlisted(self) -> list[str]:
        """Who has a mark, but is not on the roster."""
        marked = {student for unit in self.units for student in unit.marks}
        return sorted(marked - set(self.listed))


def marked_class(root: Path, units: list[str], roster: Path | None, id_column: str | None) -> MarkedClass:
    """The marks of a course folder's class. Raises UnknownUnit, NoMarks, BadRoster and CourseProblem."""
    if not root.is_dir():
        raise CourseProblem(f"The course folder {root} is not there.")
    of_units = marks.of_units(root, units)
    people = class_list(root, roster, id_column).roster
    submitted = root / course_directory(root).submitted_directory
    everyone = {student.id for student in people.students}
    handed_in = {
        unit.unit: frozenset(s for s in everyone - set(unit.marks) if _has_handed_in(submitted / s / unit.unit))
        for unit in of_units
    }
    return MarkedClass(people, of_units, handed_in)


def _has_handed_in(folder: Path) -> bool:
    try:
        with OpenedFolder.of_student(folder) as opened:
            return bool(opened.names())
    except (OSError, ValueError):
        return False


@dataclass
class Table:
    """Rows of text, the header first, and what to say about them."""

    rows: list[list[str]]
    remarks: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    """Who has a mark that is not in it."""


def for_spreadsheet(marks: MarkedClass) -> Table:
    """A row a student: of each unit the status, the score, what it is made of, and what each exercise gave."""
    person = [name for name in marks.roster.person if name != "id"]
    header = ["student_id", *person, *(column for unit in marks.units for column in _columns(unit))]
    rows = [header]
    for student in (*marks.listed, *marks.unlisted):
        who = [text(student), *(value(marks.roster.value(student, name)) for name in person)]
        rows.append(who + [cell for unit in marks.units for cell in _cells(marks, unit, student)])
    return Table(rows, [*_about(marks)])


def for_canvas(marks: MarkedClass, assignments: Mapping[str, str]) -> Table:
    """Canvas's own columns of its students, and one for each unit: the assignment's, where the roster has it.

    assignments: by unit, the assignment's column in Canvas, where it is not called as the unit is. Raises NoTable.
    """
    roster = marks.roster
    is_canvas = roster.platform == "Canvas"
    person = list(roster.person if is_canvas else _CANVAS_COLUMNS)
    columns = [_assignment(roster, unit.unit, assignments.get(unit.unit)) for unit in marks.units]
    possible = [_points_possible(roster, unit, name) for unit, name in zip(marks.units, columns, strict=True)]
    rows = [[*person, *columns], [_POINTS_POSSIBLE, *[""] * (len(person) - 1), *possible]]
    spared = []
    for student in marks.listed:
        who = [roster.value(student, name) for name in person] if is_canvas else _as_canvas(roster, student)
        has = [roster.value(student, name) for name in columns]
        scores = [marks.score(student, unit) for unit in marks.units]
        kept = [
            old if old in _OF_CANVAS and student not in unit.marks else new
            for old, new, unit in zip(has, scores, marks.units, strict=True)
        ]
        rows.append([*map(value, who), *kept])
        spared += [student] if kept != scores else []
    said = [] if is_canvas else ["The roster is not Canvas's: Canvas gets the ids as `SIS Login ID`."]
    for unit, name, points in zip(marks.units, columns, possible, strict=True):
        if name not in roster.header:
            said.append(
                f"No assignment of Canvas's is called {unit.unit}: it would make a new one. If it has one, take its "
                f'table of grades for the roster, and name the column: --assignment "{unit.unit}=NAME (NUMBER)".'
            )
        elif points != number(unit.max_score):
            said.append(f"{name} has {points or 'no'} points in Canvas, and {number(unit.max_score)} here.")
    if spared:
        said.append(f"Handed in nothing, and left excused (EX) or without the assignment (N/A): {', '.join(spared)}.")
    return Table(rows, [*said, *_about(marks), *_changed(rows[2:], len(person), "Canvas")], marks.unlisted)


def for_moodle(marks: MarkedClass) -> Table:
    """A grading worksheet, where the roster is one, with its grades filled in; else a table for Moodle's grade import.

    Raises NoTable.
    """
    roster = marks.roster
    if set(map(roster.word, roster.header)) >= _WORKSHEET:
        return _worksheet(marks)
    is_moodle = roster.platform == "Moodle"
    person = list(roster.person) if is_moodle else ["Username", "First name", "Last name", "Email address"]
    rows = [[*person, *(unit.unit for unit in marks.units)]]
    for student in marks.roster.students:
        ours = (student.id, student.first_name or "", student.last_name or "", student.email or "")
        who = [roster.value(student.id, name) for name in person] if is_moodle else ours
        rows.append([*map(value, who), *(marks.score(student.id, unit) for unit in marks.units)])
    said = [] if is_moodle else ["The roster is not Moodle's: Moodle gets the ids as `Username`."]
    return Table(rows, [*said, *_about(marks), *_changed(rows[1:], len(person), "Moodle")], marks.unlisted)


def _columns(unit: UnitMarks) -> Iterator[str]:
    yield from (f"{unit.unit}.{name}" for name in ("status", "score", "max_score", "late_penalty", "to_be_read"))
    yield from (f"{unit.unit}.{_exercise(cell)}" for cell in unit.points)


def _cells(marks: MarkedClass, unit: UnitMarks, student: str) -> list[str]:
    mark = unit.marks.get(student)
    shown = mark.shown if mark else None
    score = marks.score(student, unit)
    return [
        marks.status(student, unit),
        score,
        number(unit.max_score),
        number(shown.late_penalty) if shown else score,
        str(len(mark.waiting)) if mark else score,
        *(number(shown.scores[cell]) if shown else score for cell in unit.points),
    ]


def _exercise(cell: str) -> str:
    return cell.removeprefix(course.CHECK_PREFIX)


def _assignment(roster: Roster, unit: str, asked: str | None) -> str:
    """The column of a unit's assignment. Raises NoTable if the one that was asked for is not there."""
    if asked is not None:
        if asked not in roster.header:
            raise NoTable(f"The roster has no column `{asked}`, which is to be the assignment of {unit}.")
        return asked
    alike = [name for name in roster.header if _plain(_ASSIGNMENT_NUMBER.sub("", name)) == _plain(unit)]
    if len(alike) > 1:
        raise NoTable(
            f"The roster has several assignments that are called {unit}: {', '.join(alike)}. Choose one: "
            f'--assignment "{unit}={alike[0]}".'
        )
    return alike[0] if alike else unit


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _points_possible(roster: Roster, unit: UnitMarks, column: str) -> str:
    """Canvas's own, where it has the assignment: what is uploaded would change them."""
    return roster.points_possible.get(column, number(unit.max_score))


def _as_canvas(roster: Roster, student: str) -> list[str]:
    one = next(one for one in roster.students if one.id == student)
    name = ", ".join(filter(None, (one.last_name, one.first_name))) or student
    return [name, "", "", student, ""]


def _worksheet(marks: MarkedClass) -> Table:
    roster, (unit, *more) = marks.roster, marks.units
    if more:
        raise NoTable("A grading worksheet of Moodle's is for one assignment: name one unit.")
    header = [name for name in roster.header if name in roster.person or _TAKEN_BACK.fullmatch(roster.word(name))]
    rows = [header]
    too_much = []
    for student in marks.listed:
        score = marks.score(student, unit)
        old = {name: value(roster.value(student, name)) for name in header}
        rows.append([score if roster.word(name) == "grade" else old[name] for name in header])
        if _as_number(roster.value(student, "maximum grade")) < _as_number(score):
            too_much.append(student)
    said = [
        f"Moodle passes over grades above its maximum without a word: {', '.join(too_much)}. Set the assignment's "
        f"maximum grade in Moodle to {number(unit.max_score)}."
    ]
    return Table(rows, [*(said if too_much else []), *_about(marks)], marks.unlisted)


def _as_number(written: str) -> float:
    """Endless where nothing is written."""
    try:
        return float(written.replace(",", "."))
    except ValueError:
        return float("inf")


def _about(marks: MarkedClass) -> Iterator[str]:
    """What to know about the marks in any table."""
    for unit in marks.units:
        of_status = {student: marks.status(student, unit) for student in (*marks.listed, *marks.unlisted)}
        nothing = sum(status == NOT_SUBMITTED for status in of_status.values())
        ungraded = [student for student, status in of_status.items() if status == NOT_GRADED]
        waiting = sum(len(mark.waiting) for mark in unit.marks.values())
        if nothing == len(of_status):
            yield f"{unit.unit}: NOBODY HAS HANDED IN, so everyone has 0 for it here."
        elif nothing:
            yield f"{unit.unit}: nothing was handed in by {nothing} of {len(of_status)}, which counts 0."
        if ungraded:
            yield f"{unit.unit}: handed in and not graded, without a mark here: {', '.join(ungraded)}."
        if waiting:
            yield f"{unit.unit}: answers for a person to read, in formgrader: {waiting}. Until then they count 0."


def _changed(rows: Iterable[list[str]], columns: int, platform: str) -> Iterator[str]:
    """Which values got an apostrophe, by which a platform does not know its people."""
    found = [cell for row in rows for cell in row[:columns] if _APOSTROPHE.search(cell)]
    if found:
        yield (
            f"An apostrophe was put before what a spreadsheet would take for a formula: {', '.join(found)}. "
            f"{platform} has to find these students by their other columns."
        )


__all__ = ["Mark", "MarkedClass", "NoTable", "Table", "for_canvas", "for_moodle", "for_spreadsheet"]

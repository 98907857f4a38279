"""Make tables of a class's grades for spreadsheets, for import into Canvas and for import into Moodle."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from .. import UserError, course
from ..course.submitted_files import OpenedFolder
from ..gradebook.class_gradebook import UnitGrades, of_units
from ..gradebook.nbgrader_course import CourseProblem, course_directory
from ..gradebook.roster import Roster, class_list
from ..gradebook.tables import number, text, value

NOT_SUBMITTED, NOT_GRADED, GRADED = "not_submitted", "not_graded", "graded"
"""Statuses for grades without a report: not submitted, not graded yet, or graded by nbgrader's own command."""
_CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_MOODLE_COLUMNS = ("Username", "First name", "Last name", "Email address")
_POINTS_POSSIBLE = "    Points Possible"
_OF_CANVAS = {"EX", "N/A"}
"""Values in Canvas's table instead of a grade: the student is excused, or does not have the assignment."""
_ASSIGNMENT_NUMBER = re.compile(r" \(\d+\)$")
_WORKSHEET = {"identifier", "grade"}
"""The columns by which Moodle's grading worksheet is recognised."""
_WORKSHEET_COLUMNS = re.compile(r"status|grade|maximum grade|grade can be changed|last modified \(.*\)")
"""The worksheet's columns that are copied. Comments are left out, because an added apostrophe would change them."""
_APOSTROPHE = re.compile(r"(?:^|[;\t\r\n])'")
"""Matches the apostrophes that `spreadsheet.text` adds."""


class NoTable(UserError):
    """Raised if a table of grades cannot be made; `str()` says why and what to do."""


@dataclass(frozen=True)
class GradedClass:
    """The grades of a class in one or more units, with its roster."""

    roster: Roster
    units: list[UnitGrades]
    handed_in: Mapping[str, frozenset[str]]
    """The students with a submission on the disk, their own or their group's, by unit."""

    def status(self, student: str, unit: UnitGrades) -> str:
        """Return the status of a student's submission: that of its report, NOT_SUBMITTED, NOT_GRADED or GRADED."""
        if student in unit.grades:
            return unit.grades[student].status or GRADED
        return NOT_GRADED if student in self.handed_in[unit.unit] else NOT_SUBMITTED

    def score(self, student: str, unit: UnitGrades) -> str:
        """Return a student's score as text: `0` if nothing was submitted, empty if the submission is not graded."""
        grade = unit.grades.get(student)
        return "" if self.status(student, unit) == NOT_GRADED and not grade else number(grade.score if grade else 0.0)

    @property
    def listed(self) -> list[str]:
        """The ids of the students on the roster."""
        return [student.id for student in self.roster.students]

    @property
    def unlisted(self) -> list[str]:
        """The ids of the students who have a grade but are not on the roster."""
        return sorted({student for unit in self.units for student in unit.grades} - set(self.listed))


def graded_class(
    root: Path, units: list[str], roster: Path | None, id_column: str | None, section: str | None = None
) -> GradedClass:
    """Read a class's grades and roster.

    root: the class's folder. units: names of the units; all if empty. roster, id_column: the roster's file and its
    column of ids; None for the defaults. section: return only the students of this section.
    Raises UnknownUnit, NoGrades, BadRoster and CourseProblem.
    """
    if not root.is_dir():
        raise CourseProblem(f"The course folder {root} is not there.")
    grades = of_units(root, units)
    people = class_list(root, roster, id_column).roster.in_section(section)
    folder = root / course_directory(root).submitted_directory
    students = {student.id for student in people.students}
    if section is not None:
        grades = [of_unit.of_students(students) for of_unit in grades]
    handed_in = {
        unit.unit: frozenset(
            student
            for student in students - set(unit.grades)
            if any(_has_files(folder / member / unit.unit) for member in people.group_of(student))
        )
        for unit in grades
    }
    return GradedClass(people, grades, handed_in)


def _has_files(folder: Path) -> bool:
    try:
        with OpenedFolder.of_student(folder) as opened:
            return bool(opened.names())
    except (OSError, ValueError):
        return False


@dataclass
class Table:
    """A table as rows of text, of which the first is the header, with remarks for the instructor."""

    rows: list[list[str]]
    remarks: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    """The ids of students who have a grade but are not in the table."""


def for_spreadsheet(grades: GradedClass) -> Table:
    """Return a table for spreadsheets, with a row for each student.

    For each unit, a row has the status, the score, the late penalty, the extension and each exercise's points.
    """
    person = [name for name in grades.roster.person if name != "id"]
    header = ["student_id", *person]
    for unit in grades.units:
        cells = [cell.removeprefix(course.CHECK_PREFIX) for cell in unit.points]
        columns = ("status", "score", "max_score", "late_penalty", "extension_hours", "to_be_read", *cells)
        header += [f"{unit.unit}.{name}" for name in columns]
    rows = [header]
    for student in (*grades.listed, *grades.unlisted):
        who = [text(student), *(value(grades.roster.value(student, name)) for name in person)]
        rows.append(who + [cell for unit in grades.units for cell in _cells(grades, unit, student)])
    return Table(rows, [*_about(grades)])


def _cells(grades: GradedClass, unit: UnitGrades, student: str) -> list[str]:
    grade = unit.grades.get(student)
    status, score = grades.status(student, unit), grades.score(student, unit)
    extension = number(unit.extensions.get(student, timedelta()) / timedelta(hours=1))
    if grade is None:
        return [status, score, number(unit.max_score), score, extension, *[score] * (1 + len(unit.points))]
    points = [number(grade.shown.scores[cell]) for cell in unit.points]
    penalty, waiting = number(grade.shown.late_penalty), str(len(grade.waiting))
    return [status, score, number(unit.max_score), penalty, extension, waiting, *points]


def for_canvas(grades: GradedClass, assignments: Mapping[str, str]) -> Table:
    """Return a table for import into Canvas: Canvas's columns about students, and a column for each unit.

    The column of a unit is that of its assignment in the roster, if the roster has it. assignments: the column's name,
    by unit, for assignments that are not named like the unit. Raises NoTable.
    """
    roster = grades.roster
    person, people, remarks = _people(grades, "Canvas")
    columns = {unit.unit: _assignment(roster, unit.unit, assignments.get(unit.unit)) for unit in grades.units}
    rows = [[*person, *columns.values()], [_POINTS_POSSIBLE, *[""] * (len(person) - 1)]]
    spared: dict[str, None] = {}
    for student, who in people.items():
        rows.append(who)
        for unit in grades.units:
            before = roster.value(student, columns[unit.unit])
            is_spared = before in _OF_CANVAS and student not in unit.grades
            who.append(before if is_spared else grades.score(student, unit))
            spared |= {student: None} if is_spared else {}
    for unit in grades.units:
        name, most = columns[unit.unit], number(unit.max_score)
        points = roster.points_possible.get(name, most)
        rows[1].append(points)  # uploading other points than Canvas has would change them
        if name not in roster.header:
            remarks.append(
                f"No assignment in Canvas is called {unit.unit}, so Canvas would make a new one. If Canvas has "
                "one, use its "
                f'table of grades for the roster, and name the column: --assignment "{unit.unit}=NAME (NUMBER)".'
            )
        elif _as_number(points) != _as_number(most):
            remarks.append(f"Assignment {name} has {points or 'no'} points in Canvas, but {most} here.")
    if spared:
        remarks.append(
            f"Submitted nothing, and left excused (EX) or without the assignment (N/A): {', '.join(spared)}."
        )
    return Table(rows, remarks, grades.unlisted)


def for_moodle(grades: GradedClass) -> Table:
    """Return a table for import into Moodle; if the roster is a grading worksheet, this worksheet with the grades.

    Raises NoTable.
    """
    roster = grades.roster
    if set(map(roster.word, roster.header)) >= _WORKSHEET:
        return _worksheet(grades)
    person, people, remarks = _people(grades, "Moodle")
    rows = [[*person, *(unit.unit for unit in grades.units)]]
    rows += [[*who, *(grades.score(student, unit) for unit in grades.units)] for student, who in people.items()]
    return Table(rows, remarks, grades.unlisted)


def _people(grades: GradedClass, platform: str) -> tuple[tuple[str, ...], dict[str, list[str]], list[str]]:
    """Return a platform's columns that identify students, the values in them by student, and remarks on both.

    platform: `Canvas` or `Moodle`.
    """
    roster, remarks = grades.roster, []
    if roster.platform == platform:
        columns = roster.person
        rows = {one.id: [roster.value(one.id, name) for name in columns] for one in roster.students}
    elif platform == "Canvas":
        columns = _CANVAS_COLUMNS
        names = {one.id: ", ".join(filter(None, (one.last_name, one.first_name))) for one in roster.students}
        rows = {student: [name or student, "", "", student, ""] for student, name in names.items()}
    else:
        columns = _MOODLE_COLUMNS
        rows = {one.id: [one.id, one.first_name or "", one.last_name or "", one.email or ""] for one in roster.students}
    if roster.platform != platform:
        id_column = "SIS Login ID" if platform == "Canvas" else "Username"
        remarks.append(f"The roster is not from {platform}, so the ids are exported as `{id_column}`.")
    people = {student: list(map(value, row)) for student, row in rows.items()}
    if changed := [cell for row in people.values() for cell in row if _APOSTROPHE.search(cell)]:
        remarks.append(
            f"An apostrophe was put before values that a spreadsheet would read as a formula: {', '.join(changed)}. "
            f"{platform} has to find these students by their other columns."
        )
    return columns, people, [*remarks, *_about(grades)]


def _assignment(roster: Roster, unit: str, column: str | None) -> str:
    """Return the name of the roster's column for a unit's assignment; the unit's name if no column matches.

    column: the name that the instructor gave, or None. Raises NoTable.
    """
    if column is not None:
        if column not in roster.header:
            raise NoTable(f"The roster has no column `{column}`, which you named as the assignment of {unit}.")
        return column
    alike = [name for name in roster.header if _plain(_ASSIGNMENT_NUMBER.sub("", name)) == _plain(unit)]
    if len(alike) > 1:
        raise NoTable(
            f"The roster has several assignments that are called {unit}: {', '.join(alike)}. Choose one: "
            f'--assignment "{unit}={alike[0]}".'
        )
    return alike[0] if alike else unit


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _worksheet(grades: GradedClass) -> Table:
    """Return Moodle's grading worksheet with the grades filled in; raises NoTable if there are several units."""
    roster, (unit, *more) = grades.roster, grades.units
    if more:
        raise NoTable("A grading worksheet from Moodle is for one assignment: name only one unit.")
    header = [
        name for name in roster.header if name in roster.person or _WORKSHEET_COLUMNS.fullmatch(roster.word(name))
    ]
    rows = [header]
    too_high = []
    for student in grades.listed:
        score = grades.score(student, unit)
        rows.append([score if roster.word(name) == "grade" else value(roster.value(student, name)) for name in header])
        if _as_number(roster.value(student, "maximum grade")) < _as_number(score):
            too_high.append(student)
    remarks = [
        f"Moodle ignores grades above its maximum, and does not say so: {', '.join(too_high)}. Set the assignment's "
        f"maximum grade in Moodle to {number(unit.max_score)}."
    ]
    return Table(rows, [*(remarks if too_high else []), *_about(grades)], grades.unlisted)


def _as_number(text: str) -> float:
    """Return the number that a cell of a table contains; infinity if it contains no number."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return float("inf")


def _about(grades: GradedClass) -> Iterator[str]:
    """Yield remarks on each unit about missing submissions, missing grades and answers that a person must grade."""
    for unit in grades.units:
        statuses = {student: grades.status(student, unit) for student in (*grades.listed, *grades.unlisted)}
        missing = sum(status == NOT_SUBMITTED for status in statuses.values())
        ungraded = [student for student, status in statuses.items() if status == NOT_GRADED]
        waiting = sum(len(grade.waiting) for grade in unit.grades.values())
        if missing == len(statuses):
            yield f"{unit.unit}: NOBODY HAS SUBMITTED, so everyone has 0 for this unit."
        elif missing:
            yield f"{unit.unit}: {missing} of {len(statuses)} students submitted nothing, which counts 0."
        if ungraded:
            yield f"{unit.unit}: submitted but not graded, so without a grade here: {', '.join(ungraded)}."
        if waiting:
            yield f"{unit.unit}: answers for a person to read, in formgrader: {waiting}. Until then they count 0."

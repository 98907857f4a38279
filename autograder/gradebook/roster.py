"""The class: the instructor's own table, the one that Canvas or Moodle exports, or the gradebook's students."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Student
from sqlalchemy.orm import Session

from ..course import settings
from ..course.notebook import list_names, printable
from ..course.submitted_files import RULE, can_be_id, is_one_name
from . import nbgrader_course, tables
from .tables import BadRoster as BadRoster
from .tables import Line, RosterTable

ROSTER = "roster.csv"
TEMPLATE = "id,first_name,last_name,email\n"
"""A roster without students."""

_BEFORE_AT = " before @"
"""Suffix of a column's name, for the part of its addresses that is before the @."""
_TEST_STUDENT = "Student, Test"
_SEPARATED = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
"""Separator of a student's sections in a table of Canvas's or Moodle's."""


class Strangers(BadRoster):
    """Nobody who submitted a unit is on the roster; other units may have no such problem."""


@dataclass(frozen=True)
class Enrolled:
    """A student as nbgrader stores one."""

    id: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None


@dataclass(frozen=True)
class Roster:
    """The students of a class, and what else their table has about them."""

    students: list[Enrolled]
    platform: str = ""
    """"Canvas" or "Moodle" if the table is theirs, else empty."""
    person: tuple[str, ...] = ()
    """The table's columns that identify a person, in its order."""
    header: tuple[str, ...] = ()
    lines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Each student's values by column, by the student's id."""
    points_possible: Mapping[str, str] = field(default_factory=dict)
    """Canvas's line with the points of each assignment, by column."""
    remarks: tuple[str, ...] = ()
    """Messages to the instructor on how the table was read."""
    left_out: tuple[str, ...] = ()
    """Ids of a platform's table that no student can have; their lines are left out."""
    words: Mapping[str, str] = field(default_factory=dict)
    """English name of each column, in lower case."""

    def value(self, student: str, column: str) -> str:
        """Return a student's value in a column, named in any case or in English; empty if the column is missing."""
        return _value(self.lines.get(student, {}), self.words, column)

    def in_section(self, section: str | None) -> "Roster":
        """Return the roster with the students of one section; the whole roster for None.

        Raises BadRoster, which lists the sections, if no student is in this one.
        """
        if section is None:
            return self
        wanted = section.strip()
        texts = {student.id: self._section_text(student.id) for student in self.students}
        sections = {name: {*self._separated(text), text} for name, text in texts.items() if text}
        if students := [student for student in self.students if wanted in sections.get(student.id, ())]:
            return replace(self, students=students)
        if names := sorted({name for text in texts.values() for name in self._separated(text)}):
            raise BadRoster(f"The roster has no section `{printable(section)}`. Its sections are: {list_names(names)}.")
        raise BadRoster("No student on the roster has a section. Add a column `section` to the roster.")

    def group_of(self, student: str) -> list[str]:
        """Return the ids of a student's group, the student included; only the student without a group.

        Members of other sections are included.
        """
        group = self._group(student)
        return self._groups[group] if group else [student]

    def group(self, name: str) -> list[str]:
        """Return the ids of a group's members; none if there is no such group."""
        return self._groups.get(name.strip(), [])

    @cached_property
    def _groups(self) -> dict[str, list[str]]:
        """The members of each group."""
        groups: dict[str, list[str]] = {}
        for student in self.lines:
            if group := self._group(student):
                groups.setdefault(group, []).append(student)
        return groups

    def _group(self, student: str) -> str:
        """Return the group's name; empty without one. Moodle's column Groups divides the class into sections."""
        return self.value(student, "group") or ("" if self.platform == "Moodle" else self.value(student, "groups"))

    def _section_text(self, student: str) -> str:
        return self.value(student, "section") or (self.value(student, "groups") if self.platform == "Moodle" else "")

    def _separated(self, text: str) -> list[str]:
        """Return the sections in a value. In Canvas's and Moodle's tables there may be several: `Lec 1, Lab 2`."""
        return [name for name in (_SEPARATED.split(text) if self.platform else [text]) if name]

    def word(self, column: str) -> str:
        """Return the English name of a column of the header, in lower case."""
        return self.words.get(column, column.lower())


@dataclass(frozen=True)
class ClassList:
    """The students of a course folder's class: those on the roster, and those in the gradebook."""

    roster: Roster
    file: Path | None
    """The roster's file; None if only the gradebook has students."""
    enrolled: frozenset[str]
    """The ids in the gradebook."""
    assignments: tuple[str, ...]
    """The names of the gradebook's assignments, whether the autograder's or not."""

    def refuse_strangers(self, submitted: Sequence[str], unit: str) -> None:
        """Raise Strangers if nobody who submitted is on the roster: folders are then not named by the roster's ids.

        A single submission is accepted, because its student may be new.
        """
        ids = [student.id for student in self.roster.students]
        if self.file and len(submitted) > 1 and set(ids).isdisjoint(submitted):
            raise Strangers(
                f"Nobody who submitted {unit} is on the roster {self.file}: there are submissions of "
                f"{list_names(submitted, 5)}, and its ids are {list_names(ids, 5)}. Nothing in this unit is graded. If "
                "another column has the ids, name it with `--id-column`; else put these students on the roster."
            )


def class_list(root: Path, file: Path | None = None, id_column: str | None = None) -> ClassList:
    """Return the class of a course folder: the given roster, else a ROOT/roster.csv with students, else the gradebook.

    The class's settings supply what is not given. Raises BadRoster and CourseProblem.
    """
    with nbgrader_course.database_of(root).reading() as session:
        students = enrolled(session) if session else []
        assignments = tuple(name for (name,) in session.query(Assignment.name)) if session else ()
    ids = frozenset(student.id for student in students)
    file = file or (root / ROSTER if _is_filled_in(root / ROSTER) else None)
    if file is None:
        columns = tuple(TEMPLATE.strip().split(","))
        lines = {student.id: {name: getattr(student, name) or "" for name in columns} for student in students}
        return ClassList(Roster(students, "", columns, columns, lines), None, ids, assignments)
    try:
        its = settings.of_roster(root)
    except settings.BadSettings as reason:
        raise BadRoster(str(reason)) from None
    return ClassList(read(file, ids, id_column or its.id_column, its.header), file, ids, assignments)


def enrolled(session: Session) -> list[Enrolled]:
    """Return everyone in the gradebook, sorted by id."""
    rows = session.query(Student.id, Student.first_name, Student.last_name, Student.email)
    return sorted((Enrolled(*row) for row in rows), key=lambda student: student.id)  # servers sort by language


def may_be_graded(directory: Any) -> Callable[[str], bool]:
    """Return a predicate on folder names: true for ids of students, enrolled or new. Raises CourseProblem.

    directory: nbgrader's CourseDirectory.
    """
    gradebook = nbgrader_course.database_of_program(directory)
    with gradebook.reading() as session:
        known = {student.id for student in enrolled(session)} if session else set()
    return lambda name: is_one_name(name) and (name in known or (can_be_id(name) and gradebook.holds_id(name)))


def _is_filled_in(path: Path) -> bool:
    """Return whether there is a roster that differs from the template."""
    try:
        return path.read_text(encoding="utf-8-sig").strip() != TEMPLATE.strip()
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError):
        return True  # `read` reports what is wrong


@dataclass(frozen=True)
class _Kind:
    """A kind of table, by the program that writes it: the English names of its columns in lower case."""

    platform: str
    ids: tuple[str, ...]
    """The columns that can name a student's folder, the best first."""
    first_name: tuple[str, ...]
    last_name: tuple[str, ...]
    whole_name: tuple[str, ...]
    email: tuple[str, ...]
    more: tuple[str, ...]
    """Further columns that identify a person."""
    others: str
    """Regular expression for the other columns that the program writes."""

    @property
    def person(self) -> frozenset[str]:
        """The columns that identify a person."""
        return frozenset((*self.ids, *self.first_name, *self.last_name, *self.whole_name, *self.email, *self.more))


_OWN = _Kind(
    "",
    ids=("id",),
    first_name=("first_name", "first name"),
    last_name=("last_name", "last name", "surname"),
    whole_name=("full name",),
    email=("email", "email address"),
    more=("lms_user_id", "section", "groups"),
    others="lms_user_id",
)
_CANVAS = _Kind(
    "Canvas",
    ids=("sis login id", "sis user id", "id"),
    first_name=("firstname",),
    last_name=("lastname",),
    whole_name=("student",),
    email=(),
    more=("integration id", "root account", "section"),
    others=r"groups|.*\(\d+\)"
    r"|.*\b(current|final) (score|points|grade)( \(.*\))?|.*\boverride (score|grade|status)( \(.*\))?",
)
_MOODLE = _Kind(
    "Moodle",
    ids=("username", "id number", "email address"),
    first_name=("first name",),
    last_name=("last name", "surname"),
    whole_name=("full name", "first name / last name", "first name / surname"),
    email=("email address",),
    more=("identifier",),
    others=r"status|grade|maximum grade|grade can be changed|last modified \(.*\)|feedback comments|groups|institution"
    r"|section|department|last downloaded from this course|.*\((real|percentage|letter|feedback)\)|online text",
)
_NAMES = _OWN.person | _CANVAS.person | _MOODLE.person
_NO_STUDENT = re.compile(r"\s*(points possible|muted|manual posting.*)?\s*", re.IGNORECASE)
"""Values in the columns of a person in those of Canvas's lines that have no student."""


def read(
    path: Path,
    in_gradebook: Collection[str] = (),
    id_column: str | None = None,
    header: Mapping[str, str] | None = None,
) -> Roster:
    """Read the students of a table, in its order. Raises BadRoster.

    in_gradebook: ids to which the rule for new ids does not apply.
    id_column: the column with the ids; with ` before @` behind its name, the part of an address before the @. Default:
        in an instructor's own table `id` (its other columns are those of `nbgrader db student import`), in Canvas's
        or Moodle's the first column of those that can name a folder.
    header: further words of headers, each with the English one.
    """
    table = tables.read(path, _NAMES, header or {})
    kind = _kind(set(table.words.values()))
    people, test_students, points = _people(table, kind)
    column = _id_column(path, table, kind, people, id_column)
    if crowded := next((line.number for line in table.lines if line.is_crowded), None):
        raise BadRoster(
            f"The roster {path} has more values than columns in line {crowded}. Is there a "
            f"`{printable(table.separator)}` in a name? Put the name in quotation marks."
        )
    ids = [_value(line.values, table.words, column.removesuffix(_BEFORE_AT)) for line in people]
    if column.endswith(_BEFORE_AT):
        ids = [address.partition("@")[0].strip() for address in ids]
    _check(path, people, ids, column)
    unsafe = tuple(name for name in ids if name not in in_gradebook and not can_be_id(name))
    if unsafe and (not kind.platform or len(unsafe) == len(ids)):
        raise BadRoster(f"The roster {path} has ids that no new student can have: {_ascii(unsafe)}. An id has {RULE}.")
    lines = {name: line.values for line, name in zip(people, ids, strict=True) if name not in unsafe}
    return Roster(
        [_enrolled(kind, name, values, table.words) for name, values in lines.items()],
        kind.platform,
        tuple(name for name in table.header if table.words[name] in kind.person),
        table.header,
        lines,
        points,
        tuple(_remarks(path, table, kind, column, test_students, unsafe)),
        unsafe,
        table.words,
    )


def _kind(columns: set[str]) -> _Kind:
    if columns & {"sis login id", "sis user id"} or columns >= {"student", "id", "section"}:
        return _CANVAS
    return _MOODLE if columns & _MOODLE.person and "id" not in columns else _OWN


def _people(table: RosterTable, kind: _Kind) -> tuple[list[Line], int, Mapping[str, str]]:
    """Return the lines of students, the number of test students, and Canvas's line with the points."""
    if kind is not _CANVAS:
        return list(table.lines), 0, {}
    people: list[Line] = []
    test_students = 0
    points: Mapping[str, str] = {}
    for line in table.lines:
        person = [line.values[name] for name in table.header if table.words[name] in kind.person]
        if all(map(_NO_STUDENT.fullmatch, person)):
            points = line.values if "points possible" in " ".join(person).lower() else points
        elif _value(line.values, table.words, "student") == _TEST_STUDENT:
            test_students += 1
        else:
            people.append(line)
    return people, test_students, points


def _id_column(path: Path, table: RosterTable, kind: _Kind, people: list[Line], required: str | None) -> str:
    """Return the column with the ids: the required one, or else the best that is not empty. Raises BadRoster."""
    columns = {*map(str.lower, table.header), *table.words.values()}
    if required:
        column = required.strip().lower()
        if column.removesuffix(_BEFORE_AT) not in columns:
            raise BadRoster(
                f"The roster {path} has no column `{printable(required)}`. Its columns are: {list_names(table.header)}."
            )
        return column
    for column in kind.ids:
        if column in columns and any(_value(line.values, table.words, column) for line in people):
            return column
    raise BadRoster(
        f"The roster {path} names nobody: it must have a header with a column `id`, and a line for each student, or be "
        f"the table that Canvas or Moodle exports. Its columns are: {list_names(table.header) or 'none'}. If another "
        "column has the ids, name it with `--id-column`."
    )


def _check(path: Path, people: list[Line], ids: list[str], column: str) -> None:
    """Raise BadRoster unless each line has an id of its own."""
    if not any(ids):
        raise BadRoster(f"The roster {path} names nobody: its column `{printable(column)}` is empty.")
    if without := [str(line.number) for line, name in zip(people, ids, strict=True) if not name]:
        raise BadRoster(
            f"The roster {path} has no {printable(column)} in line {list_names(without)}: add it, or delete the line."
        )
    if repeated := [name for name, count in Counter(ids).items() if count > 1]:
        raise BadRoster(f"The roster {path} has {list_names(sorted(repeated))} more than once.")


def _enrolled(kind: _Kind, student: str, values: Mapping[str, str], words: Mapping[str, str]) -> Enrolled:
    first, last, whole, email = (
        next(filter(None, (_value(values, words, column) for column in columns)), None)
        for columns in (kind.first_name, kind.last_name, kind.whole_name, kind.email)
    )
    if whole and not (first or last):
        last = whole
        if kind is _CANVAS and ", " in whole:  # `O'Neil, Jr., Ada`: what is behind the last comma is the first name
            last, _, first = whole.rpartition(", ")
    return Enrolled(student, first, last, email)


def _remarks(
    path: Path, table: RosterTable, kind: _Kind, column: str, test_students: int, unsafe: Collection[str]
) -> Iterator[str]:
    name = _column(table.header, table.words, column.removesuffix(_BEFORE_AT))
    if kind.platform or name.lower() != "id":
        whose = f"{kind.platform}'s table" if kind.platform else "a table"
        part = _BEFORE_AT if column.endswith(_BEFORE_AT) else ""
        yield f"The roster {path} is {whose}; the students' ids are its column `{printable(name)}`{part}."
    if table.encoding != "UTF-8":
        yield f"The roster {path} was read as {table.encoding}."
    if test_students:
        yield f"Left out of the roster: {list_names([_TEST_STUDENT] * test_students)}, Canvas's test student."
    if unsafe:
        yield (
            f"NOT TAKEN FROM THE ROSTER: {_ascii(unsafe)}, which cannot be a new student's id, in the column "
            f"`{printable(column)}`. An id has {RULE}. Correct these lines, or name another column with `--id-column`."
        )
    known = {word for word in table.words.values() if word in kind.person or re.fullmatch(kind.others, word)}
    if unknown := [name for name in table.header if name and table.words[name] not in known]:
        yield f"Unknown columns of the roster, which are not used: {list_names(unknown)}."


def _value(values: Mapping[str, str], words: Mapping[str, str], column: str) -> str:
    """Return a line's value in the column with this name or English name; empty if the column is missing."""
    return values.get(_column(values, words, column), "")


def _column(header: Iterable[str], words: Mapping[str, str], name: str) -> str:
    """Return the column with this name in any case, else the one with this English name, else an empty string."""
    columns = list(header)
    same = [column for column in columns if column.lower() == name.lower()]
    return next(iter(same + [column for column in columns if words.get(column) == name.lower()]), "")


def _ascii(ids: Collection[str]) -> str:
    """Return invalid ids as text, with invisible characters escaped."""
    return list_names([ascii(name)[1:-1] for name in ids])
